-- Return what an event needs to know of its thread: {erasures, queue as kept, rows, marks}.
-- A row is {id, JSON or nil, 1 if it is in the log behind what is summarised}: first those messages of the queue that are
-- not, then those that are, in the log's order. A mark tells of an id that came in: 0 unknown, 1 in the log, 2 in the log
-- and not finished.
-- KEYS: ids, contents, kept queue, open events, erasures; ARGV: how many messages at most beside the queue's, JSON of the
-- queue ('' for the one that is kept), ids that came in ...
local kept = redis.call('GET', KEYS[3]) or ''
local given = ARGV[2] ~= '' and ARGV[2] or kept
local queue = given ~= '' and cjson.decode(given) or {messages = {}}
local from = queue['until'] and redis.call('LPOS', KEYS[1], queue['until'], 'RANK', -1)
from = math.max(from and from + 1 or 0, redis.call('LLEN', KEYS[1]) - #queue.messages - tonumber(ARGV[1]))
local behind = redis.call('LRANGE', KEYS[1], from, -1)
local rows, known = {}, {}
for _, id in ipairs(behind) do known[id] = true end
for _, id in ipairs(queue.messages) do
  if not known[id] then rows[#rows + 1] = {id, redis.call('HGET', KEYS[2], id), 0} end
end
for _, id in ipairs(behind) do rows[#rows + 1] = {id, redis.call('HGET', KEYS[2], id), 1} end
local marks = {}
for i = 3, #ARGV do
  marks[#marks + 1] = redis.call('HEXISTS', KEYS[2], ARGV[i]) * (1 + redis.call('SISMEMBER', KEYS[4], ARGV[i]))
end
return {redis.call('GET', KEYS[5]) or '0', kept, rows, marks}
