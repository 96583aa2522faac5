-- End a current fact's validity; its text stays for the past.
-- KEYS: fact, facts, past, texts; ARGV: fact id, successor id, valid_to
local sequence = redis.call('ZSCORE', KEYS[2], ARGV[1])
if not sequence or ARGV[1] == ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'status', 'superseded', 'superseded_by', ARGV[2], 'valid_to', ARGV[3])
redis.call('HDEL', KEYS[4], redis.call('HGET', KEYS[1], 'text_digest'))
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZADD', KEYS[3], sequence, ARGV[1])
return 1
