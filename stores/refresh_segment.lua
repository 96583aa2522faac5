-- Replace title, summary, keywords and vector of a segment that still exists.
-- KEYS: segment; ARGV: JSON, text, vector
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'json', ARGV[1], 'text', ARGV[2], 'vector', ARGV[3])
return 1
