-- Replace the vector of a document that still exists.
-- KEYS: document; ARGV: vector
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'vector', ARGV[1])
return 1
