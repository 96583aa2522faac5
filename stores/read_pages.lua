-- Read pages listed in a sorted set, by sequence: what was said, and where it is now.
-- KEYS[1] sorted set of page ids; ARGV: page key prefix, place key prefix, lowest, highest, limit, 'up' or 'down'
local ids
if ARGV[6] == 'up' then
  ids = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[3], ARGV[4], 'LIMIT', 0, ARGV[5])
else
  ids = redis.call('ZREVRANGEBYSCORE', KEYS[1], ARGV[4], ARGV[3], 'LIMIT', 0, ARGV[5])
end
local rows = {}
for _, id in ipairs(ids) do
  local said = redis.call('HMGET', ARGV[1] .. id, 'json', 'sequence')
  local place = redis.call('HMGET', ARGV[2] .. id, 'tier', 'segment', 'chain', 'keywords')
  rows[#rows + 1] = {said[1], said[2], place[1], place[2], place[3], place[4]}
end
return rows
