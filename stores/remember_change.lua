-- Remember what a change of the archive gave, so that the same call again gives it too; only the newest are kept.
-- Nothing is remembered of a user who was erased meanwhile.
-- KEYS: results, order, erasures
-- ARGV: change id, result, changes kept, expected erasures or ''
if ARGV[4] ~= '' and (redis.call('GET', KEYS[3]) or '0') ~= ARGV[4] then return end
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 1 then redis.call('RPUSH', KEYS[2], ARGV[1]) end
while redis.call('LLEN', KEYS[2]) > tonumber(ARGV[3]) do
  redis.call('HDEL', KEYS[1], redis.call('LPOP', KEYS[2]))
end
