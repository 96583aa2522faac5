-- Read all pages of some segments with their vectors and chains.
-- KEYS[1] any key of the user; ARGV: members key prefix, page key prefix, place key prefix, chain key prefix, segment ids ...
local rows = {}
for i = 5, #ARGV do
  for _, page in ipairs(redis.call('ZRANGE', ARGV[1] .. ARGV[i], 0, -1)) do
    local said = redis.call('HMGET', ARGV[2] .. page, 'json', 'sequence', 'vector')
    local place = redis.call('HMGET', ARGV[3] .. page, 'tier', 'segment', 'chain', 'keywords')
    local chain = redis.call('HMGET', ARGV[4] .. (place[3] or ''), 'meta', 'pages')
    rows[#rows + 1] = {said[1], said[2], place[1], place[2], place[3], place[4], chain[1], chain[2], said[3]}
  end
end
return rows
