-- Append a page once. The same page again changes nothing; with other text it takes the newer one in place.
-- KEYS: page, queue, log, sequence, erased, threads, agents, heads
-- ARGV: page id, content digest, thread tag, thread JSON, agent tag, agent JSON, 'revive' or 'keep', said_at,
--       page key prefix, block gap in seconds, then field/value pairs
-- ('revive': a deliberate import may bring back what was erased; a late or replayed write may not)
-- Returns {status, sequence, queue length}; status is new, same, changed or erased.

-- A page is also searched through its window: the words of the page before it, its own, and those of the page after it.
local function refresh_window(id)
  if id == '' or redis.call('EXISTS', ARGV[9] .. id) == 0 then return end
  local around = redis.call('HMGET', ARGV[9] .. id, 'previous', 'content', 'next')
  local words = {}
  for place = 1, 3 do
    local text = around[place] or ''
    if place ~= 2 then text = text ~= '' and redis.call('HGET', ARGV[9] .. text, 'content') or '' end
    words[#words + 1] = (string.gsub(text or '', '%S+', 'w_%0'))
  end
  redis.call('HSET', ARGV[9] .. id, 'window', table.concat(words, ' '))
end

if ARGV[7] == 'revive' then redis.call('SREM', KEYS[5], ARGV[1]) end
if redis.call('SISMEMBER', KEYS[5], ARGV[1]) == 1 then
  return {'erased', 0, redis.call('ZCARD', KEYS[2])}
end
-- The caller left the vector out because it saw this very text; it has to look again if that is not so any more.
if ARGV[#ARGV] == '' and redis.call('HGET', KEYS[1], 'digest') ~= ARGV[2] then return {'unread', 0, 0} end
local known = redis.call('HMGET', KEYS[1], 'digest', 'sequence', 'previous', 'next')
local fields = {}
for i = 11, #ARGV do fields[#fields + 1] = ARGV[i] end
if known[1] then
  local status = 'same'
  if known[1] ~= ARGV[2] then
    redis.call('HSET', KEYS[1], 'digest', ARGV[2], unpack(fields))
    for _, id in ipairs({known[3], ARGV[1], known[4]}) do refresh_window(id) end
    status = 'changed'
  end
  return {status, tonumber(known[2]), redis.call('ZCARD', KEYS[2])}
end
local sequence = redis.call('INCR', KEYS[4])
local previous, block = redis.call('HGET', KEYS[8], ARGV[3]) or '', ARGV[1]
if previous ~= '' then
  local before = redis.call('HMGET', ARGV[9] .. previous, 'said_at', 'block')
  if before[1] and math.abs(tonumber(ARGV[8]) - tonumber(before[1])) <= tonumber(ARGV[10]) then
    block = before[2]
    redis.call('HSET', ARGV[9] .. previous, 'next', ARGV[1])
  else
    previous = ''
  end
end
redis.call('HSET', KEYS[1], 'digest', ARGV[2], 'sequence', sequence, 'tier', 'short', 'segment', 'none',
  'chain', '', 'keywords', '[]', 'previous', previous, 'next', '', 'block', block, 'said_at', ARGV[8], unpack(fields))
refresh_window(previous)
refresh_window(ARGV[1])
redis.call('HSET', KEYS[8], ARGV[3], ARGV[1])
redis.call('ZADD', KEYS[3], sequence, ARGV[1])
redis.call('ZADD', KEYS[2], sequence, ARGV[1])
redis.call('HSET', KEYS[6], ARGV[3], ARGV[4])
redis.call('HSET', KEYS[7], ARGV[5], ARGV[6])
return {'new', sequence, redis.call('ZCARD', KEYS[2])}
