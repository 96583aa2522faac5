-- Replace title, summary, keywords and vector of a segment that still exists.
-- KEYS: segment, stale; ARGV: segment id, JSON, text, vector, cohesion, said_at of the newest page
redis.call('SREM', KEYS[2], ARGV[1])
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'json', ARGV[2], 'text', ARGV[3], 'vector', ARGV[4], 'cohesion', ARGV[5], 'said_at', ARGV[6])
return 1
