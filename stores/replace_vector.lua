-- Replace the vector of a segment that still exists, and the cohesion that belongs to it.
-- KEYS: segment; ARGV: vector, cohesion
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'vector', ARGV[1], 'cohesion', ARGV[2])
return 1
