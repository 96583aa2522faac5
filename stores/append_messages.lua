-- Append messages once each, in order, and note the thread, unless the user was erased meanwhile.
-- KEYS: ids, contents, logged threads, erasures; ARGV: thread tag, JSON of the thread's name, expected erasures or '',
-- id, JSON, id, JSON ...
-- Returns 1 when the log has the messages, else 0.
if ARGV[3] ~= '' and (redis.call('GET', KEYS[4]) or '0') ~= ARGV[3] then return 0 end
redis.call('HSET', KEYS[3], ARGV[1], ARGV[2])
for i = 4, #ARGV, 2 do
  if redis.call('HSETNX', KEYS[2], ARGV[i], ARGV[i + 1]) == 1 then redis.call('RPUSH', KEYS[1], ARGV[i]) end
end
return 1
