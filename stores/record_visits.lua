-- Count one visit for each active segment.
-- KEYS: segments, heat; ARGV: now, segment ids ...
for i = 2, #ARGV do
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) then
    redis.call('HINCRBY', KEYS[2], ARGV[i] .. ':visits', 1)
    local before = tonumber(redis.call('HGET', KEYS[2], ARGV[i] .. ':visited') or '0')
    if tonumber(ARGV[1]) > before then redis.call('HSET', KEYS[2], ARGV[i] .. ':visited', ARGV[1]) end
  end
end
return #ARGV - 1
