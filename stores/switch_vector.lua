-- Put the vector that was laid aside into use; nothing happens the second time. Erased documents do not come back.
-- KEYS: document, staged
local of, vector = unpack(redis.call('HMGET', KEYS[2], 'of', 'vector'))
redis.call('DEL', KEYS[2])
if not of or redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'vector', vector, 'vector_of', of)
return 1
