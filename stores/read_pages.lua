-- Read pages listed in a sorted set, oldest first: what was said, and where it is now.
-- KEYS[1] sorted set of page ids by sequence
-- ARGV: page key prefix, place key prefix, lowest sequence, limit, which end the limit keeps: 'oldest' or 'newest'
local ids
if ARGV[5] == 'oldest' then
  ids = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[3], '+inf', 'LIMIT', 0, ARGV[4])
else
  ids = redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', ARGV[3], 'LIMIT', 0, ARGV[4])
end
local rows = {}
for at = 1, #ids do
  local id = ids[ARGV[5] == 'oldest' and at or #ids + 1 - at]
  local said = redis.call('HMGET', ARGV[1] .. id, 'json', 'sequence')
  local place = redis.call('HMGET', ARGV[2] .. id, 'tier', 'segment', 'chain', 'keywords')
  rows[#rows + 1] = {said[1], said[2], place[1], place[2], place[3], place[4]}
end
return rows
