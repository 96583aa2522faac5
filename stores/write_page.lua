-- Append a page once. The same page again changes nothing; with another reply it takes the newer text in place.
-- KEYS: page, queue, log, sequence, erased, threads, agents
-- ARGV: page id, content digest, thread tag, thread JSON, agent tag, agent JSON, 'revive' or 'keep', field/value pairs
-- ('revive': a deliberate import may bring back what was erased; a late or replayed write may not)
-- Returns {status, sequence, queue length}; status is new, same, changed or erased.
if ARGV[7] == 'revive' then redis.call('SREM', KEYS[5], ARGV[1]) end
if redis.call('SISMEMBER', KEYS[5], ARGV[1]) == 1 then
  return {'erased', 0, redis.call('ZCARD', KEYS[2])}
end
-- The caller left the vector out because it saw this very text; it has to look again if that is not so any more.
if ARGV[#ARGV] == '' and redis.call('HGET', KEYS[1], 'digest') ~= ARGV[2] then return {'unread', 0, 0} end
local known = redis.call('HGET', KEYS[1], 'digest')
local fields = {}
for i = 8, #ARGV do fields[#fields + 1] = ARGV[i] end
if known then
  local status = 'same'
  if known ~= ARGV[2] then
    redis.call('HSET', KEYS[1], 'digest', ARGV[2], unpack(fields))
    status = 'changed'
  end
  return {status, tonumber(redis.call('HGET', KEYS[1], 'sequence')), redis.call('ZCARD', KEYS[2])}
end
local sequence = redis.call('INCR', KEYS[4])
redis.call('HSET', KEYS[1], 'digest', ARGV[2], 'sequence', sequence, 'tier', 'short', 'segment', 'none',
  'chain', '', 'keywords', '[]', unpack(fields))
redis.call('ZADD', KEYS[3], sequence, ARGV[1])
redis.call('ZADD', KEYS[2], sequence, ARGV[1])
redis.call('HSET', KEYS[6], ARGV[3], ARGV[4])
redis.call('HSET', KEYS[7], ARGV[5], ARGV[6])
return {'new', sequence, redis.call('ZCARD', KEYS[2])}
