-- After a persona update: the pages it saw are digested; pages that joined meanwhile wait for the next.
-- KEYS: undigested of the segment, heat; ARGV: segment id, digested page ids ...
local digested = redis.call('ZREM', KEYS[1], unpack(ARGV, 2))
if redis.call('HEXISTS', KEYS[2], ARGV[1] .. ':visits') == 1 then
  redis.call('HINCRBY', KEYS[2], ARGV[1] .. ':interactions', -digested)
end
return digested
