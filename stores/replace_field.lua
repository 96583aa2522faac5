-- Replace or delete one field of a hash if nobody changed it meanwhile.
-- KEYS: hash; ARGV: field, expected value, new value ('' deletes)
-- Returns 1 when it was done, else 0.
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
end
return 1
