-- End a current archived text's validity because somebody asked for it, whoever has it; it stays for the past.
-- KEYS: fact, facts, past, texts, holders; ARGV: fact id, successor id or '', valid_to
-- Returns 1, or 0 when the fact is not current or is its own successor.
local sequence = redis.call('ZSCORE', KEYS[2], ARGV[1])
if not sequence or ARGV[1] == ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'status', 'superseded', 'superseded_by', ARGV[2], 'valid_to', ARGV[3])
redis.call('HDEL', KEYS[4], redis.call('HGET', KEYS[1], 'text_digest'))
redis.call('UNLINK', KEYS[5])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZADD', KEYS[3], sequence, ARGV[1])
return 1
