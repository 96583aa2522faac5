-- Read pages by id, each with the meta of its chain.
-- KEYS[1] any key of the user; ARGV: page key prefix, place key prefix, chain key prefix, page ids ...
local rows = {}
for i = 4, #ARGV do
  local said = redis.call('HMGET', ARGV[1] .. ARGV[i], 'json', 'sequence')
  local place = redis.call('HMGET', ARGV[2] .. ARGV[i], 'tier', 'segment', 'chain', 'keywords')
  local chain = redis.call('HMGET', ARGV[3] .. (place[3] or ''), 'meta', 'pages')
  rows[#rows + 1] = {said[1], said[2], place[1], place[2], place[3], place[4], chain[1], chain[2]}
end
return rows
