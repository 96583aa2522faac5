-- Read the vectors of the newest pages of some segments.
-- KEYS[1] any key of the user; ARGV: members key prefix, page key prefix, pages of a segment at most, segment ids ...
-- Returns {page id, segment id, vector} for each page.
local rows = {}
for i = 4, #ARGV do
  for _, page in ipairs(redis.call('ZRANGE', ARGV[1] .. ARGV[i], -tonumber(ARGV[3]), -1)) do
    local vector = redis.call('HGET', ARGV[2] .. page, 'vector')
    if vector then rows[#rows + 1] = {page, ARGV[i], vector} end
  end
end
return rows
