-- Append messages once each, in order, and note the thread.
-- KEYS: ids, contents, logged threads; ARGV: thread tag, JSON of the thread's name, id, JSON, id, JSON ...
redis.call('HSET', KEYS[3], ARGV[1], ARGV[2])
for i = 3, #ARGV, 2 do
  if redis.call('HSETNX', KEYS[2], ARGV[i], ARGV[i + 1]) == 1 then redis.call('RPUSH', KEYS[1], ARGV[i]) end
end
return #ARGV / 2 - 1
