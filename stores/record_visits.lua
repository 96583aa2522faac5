-- Count one visit for each active segment, once per turn: a step that runs again changes nothing.
-- KEYS: segments, heat, visited turns; ARGV: now, turn id (empty: count anyhow), turns to keep, segment ids ...
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end  -- nor is a turn noted of a user who was erased
if ARGV[2] ~= '' then
  if redis.call('LPOS', KEYS[3], ARGV[2]) then return 0 end
  redis.call('LPUSH', KEYS[3], ARGV[2])
  redis.call('LTRIM', KEYS[3], 0, tonumber(ARGV[3]) - 1)
end
for i = 4, #ARGV do
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) then
    redis.call('HINCRBY', KEYS[2], ARGV[i] .. ':visits', 1)
    local before = tonumber(redis.call('HGET', KEYS[2], ARGV[i] .. ':visited') or '0')
    if tonumber(ARGV[1]) > before then redis.call('HSET', KEYS[2], ARGV[i] .. ':visited', ARGV[1]) end
  end
end
return #ARGV - 3
