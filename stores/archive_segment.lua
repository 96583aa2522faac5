-- Take a segment and its pages out of mid-term search; they stay in recall storage.
-- Refused when the segment was used or grew since it was judged, or holds pages no persona update has seen.
-- KEYS: segment, members, segments, archive, heat, undigested of the segment
-- ARGV: segment id, page key prefix, place key prefix, window key prefix, expected visits,
--       negated owner (searches ask for the owner, so they do not see it)
-- Returns 1 when archived, else 0.
local id = ARGV[1]
local sequence = redis.call('ZSCORE', KEYS[3], id)
if not sequence then return 0 end
local visits = redis.call('HGET', KEYS[5], id .. ':visits') or '0'
if visits ~= ARGV[5] or redis.call('ZCARD', KEYS[6]) > 0 then return 0 end
for _, page in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  if redis.call('EXISTS', ARGV[2] .. page) == 1 then
    redis.call('HSET', ARGV[3] .. page, 'tier', 'archived')
    redis.call('HSET', ARGV[2] .. page, 'owner', ARGV[6])
    redis.call('UNLINK', ARGV[4] .. page)
  end
end
redis.call('HSET', KEYS[1], 'archived', 'yes', 'owner', ARGV[6])
redis.call('ZREM', KEYS[3], id)
redis.call('ZADD', KEYS[4], sequence, id)
redis.call('HDEL', KEYS[5], id .. ':visits', id .. ':interactions', id .. ':visited')
return 1
