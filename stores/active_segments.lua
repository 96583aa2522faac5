-- Read what assignment needs of all active segments.
-- KEYS[1] sorted set of segment ids; ARGV: segment key prefix, members key prefix
local rows = {}
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local known = redis.call('HMGET', ARGV[1] .. id, 'json', 'vector', 'cohesion')
  if known[1] and known[2] then
    rows[#rows + 1] = {id, known[1], known[2], known[3] or '', redis.call('ZCARD', ARGV[2] .. id)}
  end
end
return rows
