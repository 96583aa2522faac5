-- Append a page once. The same page again changes nothing; with other text it takes the newer one in place: its time is
-- still the first one, a page in a segment waits to be digested again, and what the segment and the chain tell of it is
-- made anew; an archived page stays out of the search.
-- The searched document is written once and its place in memory is kept beside it: any change of a searched document,
-- even of a field outside the index, counts it again in BM25's document frequencies until the engine cleans up.
-- KEYS: page, place, queue, log, sequence, erased, threads, agents, heads, names, heat, stale, erasures
-- ARGV: page id, content digest, thread tag, thread JSON, agent tag, agent JSON, 'revive' or 'keep', said_at,
--       page key prefix, place key prefix, window key prefix, undigested key prefix, sitting gap in seconds,
--       number of content words, speakers' names as a JSON list, key prefixes of chain and segment,
--       JSON of a segment without texts and id, expected erasures or '', then field/value pairs
-- ('revive': a deliberate import may bring back what was erased; a late or replayed write may not)
-- Returns {status, sequence, queue length}; status is new, same, changed, erased, forgotten (with all of the user), or unread:
-- the caller has to look again.
local id, page_prefix, place_prefix, window_prefix = ARGV[1], ARGV[9], ARGV[10], ARGV[11]

-- A page is found by the words of its window: its own, three times, and those of the page before it. Not those of the page after
-- it, with which every window would have to be written twice.
local function write_window(of)
  if of == '' or redis.call('EXISTS', page_prefix .. of) == 0 then return end
  local own = redis.call('HMGET', page_prefix .. of, 'previous', 'content', 'owner', 'light')
  local words = {own[2], own[2], own[2]}
  if own[1] ~= '' then words[4] = redis.call('HGET', page_prefix .. own[1], 'content') or '' end
  redis.call('HSET', window_prefix .. of, 'text', table.concat(words, ' '), 'owner', own[3], 'light', own[4])
end

-- A speaker's name is known as long as a page has it.
local function count_names(names, by)
  for _, name in ipairs(cjson.decode(names)) do
    if redis.call('HINCRBY', KEYS[10], name, by) < 1 then redis.call('HDEL', KEYS[10], name) end
  end
end

if ARGV[19] ~= '' and (redis.call('GET', KEYS[13]) or '0') ~= ARGV[19] then
  return {'forgotten', 0, redis.call('ZCARD', KEYS[3])}
end
if ARGV[7] == 'revive' then redis.call('SREM', KEYS[6], id) end
if redis.call('SISMEMBER', KEYS[6], id) == 1 then
  return {'erased', 0, redis.call('ZCARD', KEYS[3])}
end
local known = redis.call('HMGET', KEYS[1], 'digest', 'sequence', 'previous', 'said_at', 'names')
-- The caller left the vector out because it saw this very text, or took its own time because it saw no page.
if ARGV[#ARGV] == '' and known[1] ~= ARGV[2] then return {'unread', 0, 0} end
if known[1] and known[4] ~= ARGV[8] and tonumber(known[4]) ~= tonumber(ARGV[8]) then return {'unread', 0, 0} end
local fields = {}
for i = 20, #ARGV do fields[#fields + 1] = ARGV[i] end
if known[1] then
  local status = 'same'
  if known[1] ~= ARGV[2] then
    local light = string.gsub(redis.call('HGET', KEYS[1], 'light'), '%d+$', ARGV[14])
    count_names(known[5] or '[]', -1)
    count_names(ARGV[15], 1)
    local owner = redis.call('HGET', KEYS[1], 'owner')
    for i = 1, #fields, 2 do
      if fields[i] == 'owner' then fields[i + 1] = owner end
    end
    redis.call('HSET', KEYS[1], 'digest', ARGV[2], 'light', light, 'names', ARGV[15], unpack(fields))
    local place = redis.call('HMGET', KEYS[2], 'tier', 'segment', 'chain')
    if place[1] == 'mid' then
      local waiting = redis.call('ZADD', ARGV[12] .. place[2], known[2], id)
      redis.call('HINCRBY', KEYS[11], place[2] .. ':interactions', waiting)
      redis.call('HSET', KEYS[2], 'keywords', '[]')
      local segment = ARGV[17] .. place[2]
      local blank = string.sub(ARGV[18], 1, -2) .. ', "segment_id": "' .. place[2] .. '"}'
      redis.call('HSET', segment, 'json', blank)
      redis.call('HINCRBY', segment, 'erasures', 1)
      redis.call('SADD', KEYS[12], place[2])
    end
    if place[3] and place[3] ~= '' then redis.call('UNLINK', ARGV[16] .. place[3]) end
    if place[1] ~= 'archived' then
      for _, of in ipairs({id, redis.call('HGET', KEYS[2], 'next') or ''}) do write_window(of) end
    end
    status = 'changed'
  end
  return {status, tonumber(known[2]), redis.call('ZCARD', KEYS[3])}
end
count_names(ARGV[15], 1)
local sequence = redis.call('INCR', KEYS[5])
local head = redis.call('HGET', KEYS[9], ARGV[3]) or ''
local previous, sitting = head, id
if previous ~= '' then
  local before = redis.call('HMGET', page_prefix .. previous, 'said_at', 'sitting')
  if before[1] and math.abs(tonumber(ARGV[8]) - tonumber(before[1])) <= tonumber(ARGV[13]) then
    sitting = before[2]
    redis.call('HSET', place_prefix .. previous, 'next', id)
  else
    previous = ''
  end
end
redis.call('HSET', KEYS[1], 'digest', ARGV[2], 'names', ARGV[15], 'sequence', sequence, 'previous', previous,
  'sitting', sitting, 'said_at', ARGV[8], 'light', sequence .. '|' .. sitting .. '|' .. previous .. '|' .. ARGV[14],
  unpack(fields))
redis.call('HSET', KEYS[2], 'tier', 'short', 'segment', '', 'chain', '', 'keywords', '[]', 'next', '',
  'thread_previous', head)
write_window(id)
redis.call('HSET', KEYS[9], ARGV[3], id)
redis.call('ZADD', KEYS[4], sequence, id)
redis.call('ZADD', KEYS[3], sequence, id)
redis.call('HSET', KEYS[7], ARGV[3], ARGV[4])
redis.call('HSET', KEYS[8], ARGV[5], ARGV[6])
return {'new', sequence, redis.call('ZCARD', KEYS[3])}
