-- Let a document have those of its texts that are in the archive already.
-- KEYS: texts, chunks of the document, documents
-- ARGV: document id, its entry, holders key prefix, text digests ...
-- Returns the digests of texts to put: neither there, nor taken out of the archive since the document has them; nil when the
-- entry was refused, since the user was erased.
if redis.call('HGET', KEYS[3], ARGV[1]) ~= ARGV[2] then return false end
local missing = {}
for i = 4, #ARGV do
  local item = redis.call('HGET', KEYS[1], ARGV[i])
  if item then
    redis.call('SADD', ARGV[3] .. item, ARGV[1])
    redis.call('SADD', KEYS[2], ARGV[i])
  elseif redis.call('SISMEMBER', KEYS[2], ARGV[i]) == 0 then
    missing[#missing + 1] = ARGV[i]
  end
end
return missing
