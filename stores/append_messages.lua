-- Append messages once each, in order. KEYS: ids, contents; ARGV: id, JSON, id, JSON ...
for i = 1, #ARGV, 2 do
  if redis.call('HSETNX', KEYS[2], ARGV[i], ARGV[i + 1]) == 1 then redis.call('RPUSH', KEYS[1], ARGV[i]) end
end
return #ARGV / 2
