-- After a persona update: mark pages digested and set l_interaction to what is still undigested (0 unless pages
-- joined meanwhile). Visits stay.
-- KEYS: members, heat, undigested; ARGV: segment id, digested page ids ...
local id = ARGV[1]
for i = 2, #ARGV do redis.call('HDEL', KEYS[3], ARGV[i]) end
local left = 0
for _, owner in ipairs(redis.call('HVALS', KEYS[3])) do
  if owner == id then left = left + 1 end
end
if redis.call('HEXISTS', KEYS[2], id .. ':interactions') == 1 then
  redis.call('HSET', KEYS[2], id .. ':interactions', left)
end
return left
