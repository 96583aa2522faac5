-- Of two contradicting facts end the validity of the one that was last said earlier; its text stays for the past.
-- Back-filled dialogue may arrive late, so the new fact can be the older one; of equal times the new one holds.
-- KEYS: old fact, new fact, facts, past, texts; ARGV: old fact id, new fact id
-- Returns 1 when one of them was superseded; 0 when that one is not current (again) or either is gone.
if ARGV[1] == ARGV[2] then return 0 end
local old = redis.call('HMGET', KEYS[1], 'valid_from', 'confirmed_at')
local new = redis.call('HMGET', KEYS[2], 'valid_from', 'confirmed_at')
if not old[1] or not new[1] then return 0 end
local key, id, winner, loser, since = KEYS[1], ARGV[1], ARGV[2], old, new
if tonumber(new[2]) < tonumber(old[2]) then
  if not redis.call('ZSCORE', KEYS[3], ARGV[1]) then return 0 end
  key, id, winner, loser, since = KEYS[2], ARGV[2], ARGV[1], new, old
end
local sequence = redis.call('ZSCORE', KEYS[3], id)
if not sequence then return 0 end
-- Valid until the other was first said or, if that was before, until it was said again.
local valid_to = since[1]
if tonumber(valid_to) < tonumber(loser[1]) then valid_to = since[2] end
redis.call('HSET', key, 'status', 'superseded', 'superseded_by', winner, 'valid_to', valid_to)
redis.call('HDEL', KEYS[5], redis.call('HGET', key, 'text_digest'))
redis.call('ZREM', KEYS[3], id)
redis.call('ZADD', KEYS[4], sequence, id)
return 1
