-- Put the vector that was laid beside into use; nothing happens the second time.
-- KEYS: document; ARGV: mark
if redis.call('HGET', KEYS[1], 'next_of') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'vector', redis.call('HGET', KEYS[1], 'next_vector'), 'vector_of', ARGV[1])
redis.call('HDEL', KEYS[1], 'next_of', 'next_vector')
return 1
