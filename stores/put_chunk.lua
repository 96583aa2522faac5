-- Put a text into the archive for who has it, a document or, as '', the model. An identical current text is there once, and
-- is not written again.
-- KEYS: fact, facts, texts, sequence, documents, chunks of the document, agents, erasures
-- ARGV: fact id, text digest, document id or '', the document's entry, holders key prefix, agent tag, agent JSON,
--       expected erasures or '', then field/value pairs
-- Returns the id of the item; nil when another load of the document began, or the user was erased.
if ARGV[8] ~= '' and (redis.call('GET', KEYS[8]) or '0') ~= ARGV[8] then return false end
local document = ARGV[3]
if document ~= '' and redis.call('HGET', KEYS[5], document) ~= ARGV[4] then return false end
redis.call('HSET', KEYS[7], ARGV[6], ARGV[7])
local item = redis.call('HGET', KEYS[3], ARGV[2])
if not item then
  item = ARGV[1]
  local sequence = redis.call('INCR', KEYS[4])
  redis.call('HSET', KEYS[1], 'sequence', sequence, 'text_digest', ARGV[2], unpack(ARGV, 9))
  redis.call('ZADD', KEYS[2], sequence, item)
  redis.call('HSET', KEYS[3], ARGV[2], item)
end
redis.call('SADD', ARGV[5] .. item, document)
if document ~= '' then redis.call('SADD', KEYS[6], ARGV[2]) end
return item
