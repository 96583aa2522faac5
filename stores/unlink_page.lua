-- Destroy a page and what its neighbours' windows hold of it.
-- KEYS: page, place, window, log, queue, undigested of its segment, erased, members, chain
-- ARGV: page id, page key prefix, place key prefix, window key prefix
local previous = redis.call('HGET', KEYS[1], 'previous') or ''
local following = redis.call('HGET', KEYS[2], 'next') or ''
redis.call('SADD', KEYS[7], ARGV[1])
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3])
redis.call('ZREM', KEYS[4], ARGV[1])
redis.call('ZREM', KEYS[5], ARGV[1])
redis.call('ZREM', KEYS[6], ARGV[1])
redis.call('ZREM', KEYS[8], ARGV[1])
-- The chain's meta tells what its pages said; it grows again when the chain goes on.
redis.call('UNLINK', KEYS[9])
if previous ~= '' then redis.call('HSET', ARGV[3] .. previous, 'next', '') end
if following ~= '' and redis.call('EXISTS', ARGV[2] .. following) == 1 then
  local light = string.gsub(redis.call('HGET', ARGV[2] .. following, 'light'), '|%x+|(%d+)$', '||%1')
  redis.call('HSET', ARGV[2] .. following, 'previous', '', 'light', light)
  if redis.call('EXISTS', ARGV[4] .. following) == 1 then redis.call('HSET', ARGV[4] .. following, 'light', light) end
end
for _, of in ipairs({previous, following}) do
  if of ~= '' and redis.call('EXISTS', ARGV[4] .. of) == 1 then
    local before = redis.call('HGET', ARGV[2] .. of, 'previous') or ''
    local after = redis.call('HGET', ARGV[3] .. of, 'next') or ''
    local words = {}
    for _, page in ipairs({before, of, of, after}) do
      if page ~= '' then words[#words + 1] = redis.call('HGET', ARGV[2] .. page, 'content') or '' end
    end
    redis.call('HSET', ARGV[4] .. of, 'text', table.concat(words, ' '))
  end
end
return 1
