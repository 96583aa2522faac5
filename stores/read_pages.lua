-- Read pages listed in a sorted set, by sequence.
-- KEYS[1] sorted set of page ids; ARGV: page key prefix, lowest score, highest score, limit, 'up' or 'down'
local ids
if ARGV[5] == 'up' then
  ids = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])
else
  ids = redis.call('ZREVRANGEBYSCORE', KEYS[1], ARGV[3], ARGV[2], 'LIMIT', 0, ARGV[4])
end
local pages = {}
for _, id in ipairs(ids) do
  pages[#pages + 1] = redis.call('HMGET', ARGV[1] .. id, 'json', 'tier', 'segment', 'chain', 'keywords', 'sequence')
end
return pages
