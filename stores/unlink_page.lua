-- Destroy a page, what the next page's window holds of it, and what its segment and chain tell of it.
-- Segment and chain are read here, so that a page that was moved a moment ago leaves the place where it is now. A
-- segment that has pages left loses its texts and is stale: the next maintenance makes them anew. An empty one goes.
-- KEYS: page, place, queue, log, erased, segments, archive, heat, stale, names
-- ARGV: page id, key prefixes of page, place, window, segment, members, undigested and chain,
--       JSON of a segment without texts and id
-- Returns the id of the segment that has to be told anew, or ''.
local id, page_prefix, place_prefix, window_prefix = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
redis.call('SADD', KEYS[5], id)
local previous, names = unpack(redis.call('HMGET', KEYS[1], 'previous', 'names'))
local following, segment, chain = unpack(redis.call('HMGET', KEYS[2], 'next', 'segment', 'chain'))
redis.call('UNLINK', KEYS[1], KEYS[2], window_prefix .. id)
redis.call('ZREM', KEYS[3], id)
redis.call('ZREM', KEYS[4], id)
for _, name in ipairs(cjson.decode(names or '[]')) do
  if redis.call('HINCRBY', KEYS[10], name, -1) < 1 then redis.call('HDEL', KEYS[10], name) end
end
-- The chain's meta tells what its pages said; it grows again when the chain goes on.
if chain and chain ~= '' then redis.call('UNLINK', ARGV[8] .. chain) end
if previous and previous ~= '' and redis.call('EXISTS', place_prefix .. previous) == 1 then
  redis.call('HSET', place_prefix .. previous, 'next', '')
end
if following and following ~= '' and redis.call('EXISTS', page_prefix .. following) == 1 then
  local light, content = unpack(redis.call('HMGET', page_prefix .. following, 'light', 'content'))
  light = string.gsub(light, '|%x+|(%d+)$', '||%1')
  redis.call('HSET', page_prefix .. following, 'previous', '', 'light', light)
  if redis.call('EXISTS', window_prefix .. following) == 1 then
    redis.call('HSET', window_prefix .. following, 'text', table.concat({content, content, content}, ' '),
      'light', light)
  end
end
if not segment or segment == '' then return '' end
redis.call('ZREM', ARGV[6] .. segment, id)
local waiting = redis.call('ZREM', ARGV[7] .. segment, id)
if redis.call('HEXISTS', KEYS[8], segment .. ':visits') == 1 then
  redis.call('HINCRBY', KEYS[8], segment .. ':interactions', -waiting)
end
if redis.call('ZCARD', ARGV[6] .. segment) > 0 then
  local blank = string.sub(ARGV[9], 1, -2) .. ', "segment_id": "' .. segment .. '"}'
  local erasures = tonumber(redis.call('HGET', ARGV[5] .. segment, 'erasures') or '0') + 1
  redis.call('HSET', ARGV[5] .. segment, 'json', blank, 'erasures', erasures)
  redis.call('SADD', KEYS[9], segment)
  return segment
end
redis.call('UNLINK', ARGV[5] .. segment, ARGV[6] .. segment, ARGV[7] .. segment)
redis.call('ZREM', KEYS[6], segment)
redis.call('ZREM', KEYS[7], segment)
redis.call('HDEL', KEYS[8], segment .. ':visits', segment .. ':interactions', segment .. ':visited')
redis.call('SREM', KEYS[9], segment)
return ''
