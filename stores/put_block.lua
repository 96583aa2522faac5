-- Change a block if nobody changed it meanwhile; what it was before goes to its history.
-- KEYS: block, history, changes; ARGV: expected JSON, new JSON, change id or ''
-- Returns 1 when changed, else 0.
if redis.call('HGET', KEYS[1], 'json') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'json', ARGV[2])
redis.call('RPUSH', KEYS[2], ARGV[1])
if ARGV[3] ~= '' then redis.call('SADD', KEYS[3], ARGV[3]) end
return 1
