-- Change a block if nobody changed it meanwhile; what it was before goes to its history. Both lists are bounded.
-- KEYS: block, history, changes, erasures
-- ARGV: expected JSON as it is stored, new JSON, change id or '', new version, history kept, changes kept,
--       expected erasures or ''
-- Returns 1 when changed, else 0; nil when the user was erased.
if ARGV[7] ~= '' and (redis.call('GET', KEYS[4]) or '0') ~= ARGV[7] then return false end
if redis.call('HGET', KEYS[1], 'json') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'json', ARGV[2])
redis.call('RPUSH', KEYS[2], ARGV[1])
redis.call('LTRIM', KEYS[2], -tonumber(ARGV[5]), -1)
if ARGV[3] ~= '' then
  redis.call('ZADD', KEYS[3], ARGV[4], ARGV[3])
  redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -tonumber(ARGV[6]) - 1)
end
return 1
