-- Take erased pages from what a fact rests on, and destroy it with the last of them.
-- KEYS: fact, facts, past, texts, erased, holders
-- ARGV: fact id, 'orphaned' (destroy what only erased pages support) or 'anyhow'
-- Returns 1 when the fact was destroyed, else 0.
local sources, text = unpack(redis.call('HMGET', KEYS[1], 'sources', 'text_digest'))
if not sources then return 0 end
if ARGV[2] == 'orphaned' then
  local all, left = cjson.decode(sources), {}
  for _, page in ipairs(all) do
    if redis.call('SISMEMBER', KEYS[5], page) == 0 then left[#left + 1] = page end
  end
  if #left == #all then return 0 end
  if #left > 0 then
    redis.call('HSET', KEYS[1], 'sources', cjson.encode(left))
    return 0
  end
end
redis.call('UNLINK', KEYS[1], KEYS[6])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
-- The same words may be those of a newer fact by now.
if text and redis.call('HGET', KEYS[4], text) == ARGV[1] then redis.call('HDEL', KEYS[4], text) end
return 1
