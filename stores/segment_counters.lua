-- Read the counters of segments.
-- KEYS: segments, heat; ARGV: undigested key prefix, segment ids ... (none: all active ones, oldest first)
local ids = {}
for i = 2, #ARGV do ids[#ids + 1] = ARGV[i] end
if #ids == 0 then ids = redis.call('ZRANGE', KEYS[1], 0, -1) end
local rows = {}
for _, id in ipairs(ids) do
  local heat = redis.call('HMGET', KEYS[2], id .. ':visits', id .. ':visited')
  rows[#rows + 1] = {id, heat[1] or '0', heat[2] or '0', redis.call('ZCARD', ARGV[1] .. id)}
end
return rows
