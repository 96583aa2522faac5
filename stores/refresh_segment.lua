-- Replace title, summary, keywords and vector of a segment that still exists and lost no page since they were made.
-- KEYS: segment, stale
-- ARGV: segment id, JSON, vector, cohesion, said_at of the newest page, how often it had lost a page ('': any)
-- Returns 1 when it was done, else 0; a segment that lost a page stays stale.
if ARGV[6] ~= '' and (redis.call('HGET', KEYS[1], 'erasures') or '0') ~= ARGV[6] then return 0 end
redis.call('SREM', KEYS[2], ARGV[1])
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'json', ARGV[2], 'vector', ARGV[3], 'cohesion', ARGV[4], 'said_at', ARGV[5])
return 1
