-- Store a fact once; the same statement again refreshes it. Over the bound, the oldest current fact retires.
-- Of the pages that say it the newest 20 are kept, in order of arrival. They stand in the searched document, since a recall
-- takes them from the search's own reply; a confirmation that changes nothing does not touch it.
-- KEYS: fact, facts, past, texts, sequence, erased
-- ARGV: fact id, text digest, said_at, capacity, fact key prefix, sources JSON, number of source page keys,
--       source page keys ..., then field/value pairs
-- Returns {status, fact id}; status is new, confirmed, past (known and not current any more) or gone (every source page
-- was, or is being, erased).
local id, said_at, capacity, prefix = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local sources = tonumber(ARGV[7])
local SOURCES_KEPT = 20

local function newest(pages)
  if #pages == 0 then return '[]' end
  return cjson.encode({unpack(pages, math.max(1, #pages - SOURCES_KEPT + 1))})
end

if sources > 0 then
  local alive = false
  for i, page in ipairs(cjson.decode(ARGV[6])) do
    alive = alive or (redis.call('EXISTS', ARGV[7 + i]) == 1 and redis.call('SISMEMBER', KEYS[6], page) == 0)
  end
  if not alive then return {'gone', id} end
end
local current = redis.call('HGET', KEYS[4], ARGV[2])
if current then
  local key, changes = prefix .. current, {}
  local before = redis.call('HMGET', key, 'confirmed_at', 'sources')
  if said_at > tonumber(before[1] or '0') then changes = {'confirmed_at', ARGV[3]} end
  local merged, seen = cjson.decode(before[2]), {}
  local known = #merged
  for _, page in ipairs(merged) do seen[page] = true end
  for _, page in ipairs(cjson.decode(ARGV[6])) do
    if not seen[page] then merged[#merged + 1] = page end
  end
  if #merged > known then
    changes[#changes + 1] = 'sources'
    changes[#changes + 1] = newest(merged)
  end
  if #changes > 0 then redis.call('HSET', key, unpack(changes)) end
  return {'confirmed', current}
end
if redis.call('EXISTS', KEYS[1]) == 1 then return {'past', id} end
local fields = {}
for i = 8 + sources, #ARGV do fields[#fields + 1] = ARGV[i] end
local sequence = redis.call('INCR', KEYS[5])
redis.call('HSET', KEYS[1], 'sequence', sequence, 'status', 'current', 'text_digest', ARGV[2], 'sources',
  newest(cjson.decode(ARGV[6])), 'confirmed_at', ARGV[3], 'valid_from', ARGV[3], 'valid_to', '', 'superseded_by', '', unpack(fields))
redis.call('ZADD', KEYS[2], sequence, id)
redis.call('HSET', KEYS[4], ARGV[2], id)
while redis.call('ZCARD', KEYS[2]) > capacity do
  local oldest = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  local key = prefix .. oldest[1]
  redis.call('HDEL', KEYS[4], redis.call('HGET', key, 'text_digest'))
  redis.call('HSET', key, 'status', 'retired')
  redis.call('ZREM', KEYS[2], oldest[1])
  redis.call('ZADD', KEYS[3], oldest[2], oldest[1])
end
return {'new', id}
