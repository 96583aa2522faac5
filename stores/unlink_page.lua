-- Destroy a page and what its neighbours' windows hold of it.
-- KEYS: page, log, queue, undigested, erased, members, chain
-- ARGV: page id, page key prefix
local around = redis.call('HMGET', KEYS[1], 'previous', 'next')
redis.call('SADD', KEYS[5], ARGV[1])
redis.call('UNLINK', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('HDEL', KEYS[4], ARGV[1])
redis.call('ZREM', KEYS[6], ARGV[1])
-- The chain's meta tells what its pages said; it grows again when the chain goes on.
redis.call('UNLINK', KEYS[7])
local function forget_neighbour(id, side)
  if not id or id == '' or redis.call('EXISTS', ARGV[2] .. id) == 0 then return end
  redis.call('HSET', ARGV[2] .. id, side, '')
  local own = redis.call('HMGET', ARGV[2] .. id, 'previous', 'content', 'next')
  local words = {own[2] or ''}
  for _, place in ipairs({1, 3}) do
    if own[place] and own[place] ~= '' then
      words[#words + 1] = redis.call('HGET', ARGV[2] .. own[place], 'content') or ''
    end
  end
  redis.call('HSET', ARGV[2] .. id, 'window', (string.gsub(table.concat(words, ' '), '%S+', 'w_%0')))
end
forget_neighbour(around[1], 'next')
forget_neighbour(around[2], 'previous')
return 1
