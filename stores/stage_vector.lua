-- Lay a new vector beside the one in use. A document that was erased meanwhile does not come back.
-- KEYS: document; ARGV: mark, vector
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'next_of', ARGV[1], 'next_vector', ARGV[2])
return 1
