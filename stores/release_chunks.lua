-- Let a document go of texts that it has no more. A text that nobody has now leaves the search and stays on record; of one
-- that others have, a document among them is shown as the source.
-- KEYS: documents, facts, past, texts, chunks of the document
-- ARGV: document id, its entry, fact key prefix, holders key prefix, valid_to, text digests ...
-- Returns how many left the search; nil when another load of the document began.
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return false end

local function name(holder)
  local entry = redis.call('HGET', KEYS[1], holder)
  return entry and cjson.decode(entry).name or ''
end

local function show_source(key, holders)
  local content, source = cjson.decode(redis.call('HGET', key, 'json')), ''
  for _, holder in ipairs(holders) do
    local found = name(holder)
    if found == content.source then return end
    if found ~= '' then source = found end
  end
  content.source = source
  redis.call('HSET', key, 'json', cjson.encode(content))
end

local retired = 0
for i = 6, #ARGV do
  redis.call('SREM', KEYS[5], ARGV[i])
  local item = redis.call('HGET', KEYS[4], ARGV[i])
  if item and redis.call('SREM', ARGV[4] .. item, ARGV[1]) == 1 then
    local key, left = ARGV[3] .. item, redis.call('SMEMBERS', ARGV[4] .. item)
    if #left > 0 then
      show_source(key, left)
    else
      local sequence = redis.call('ZSCORE', KEYS[2], item)
      redis.call('HSET', key, 'status', 'superseded', 'valid_to', ARGV[5])
      redis.call('HDEL', KEYS[4], ARGV[i])
      redis.call('ZREM', KEYS[2], item)
      redis.call('ZADD', KEYS[3], sequence, item)
      retired = retired + 1
    end
  end
end
return retired
