-- Set one persona entry if nobody changed it meanwhile; the older one of two goes to the history, once.
-- KEYS: persona, history, erased
-- ARGV: field, expected old JSON ('' if none), new JSON (the old one if it stays), history JSON ('' if none),
--       page key prefix, source page ids ...
-- Returns 1 when set, 0 when the entry had changed, -1 when every source page was, or is being, erased.
if #ARGV > 5 then
  local alive = false
  for i = 6, #ARGV do
    alive = alive or (redis.call('EXISTS', ARGV[5] .. ARGV[i]) == 1 and redis.call('SISMEMBER', KEYS[3], ARGV[i]) == 0)
  end
  if not alive then return -1 end
end
local current = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if current ~= ARGV[2] then return 0 end
if ARGV[4] ~= '' and not redis.call('LPOS', KEYS[2], ARGV[4]) then redis.call('RPUSH', KEYS[2], ARGV[4]) end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
