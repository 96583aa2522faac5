-- Append messages once each, in order, and note the thread, unless the user was erased meanwhile.
-- A message that is there keeps its place and takes the newer text, unless it was erased: a step that runs again from an
-- earlier checkpoint may have said something else.
-- KEYS: ids, contents, logged threads, erasures, open events; ARGV: thread tag, JSON of the thread's name, expected
-- erasures or '', id of the event that begins or '', id, JSON, id, JSON ...
-- Returns 1 when the log has the messages, 2 when the event that begins was taken in by somebody else a moment ago (nothing
-- is written then), else 0.
if ARGV[3] ~= '' and (redis.call('GET', KEYS[4]) or '0') ~= ARGV[3] then return 0 end
if ARGV[4] ~= '' and redis.call('HEXISTS', KEYS[2], ARGV[4]) == 1 then return 2 end
redis.call('HSET', KEYS[3], ARGV[1], ARGV[2])
if ARGV[4] ~= '' then redis.call('SADD', KEYS[5], ARGV[4]) end
for i = 5, #ARGV, 2 do
  local there = redis.call('HGET', KEYS[2], ARGV[i])
  if not there then redis.call('RPUSH', KEYS[1], ARGV[i]) end
  if not there or not cjson.decode(there).erased then
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
  end
end
return 1
