-- Move one page from its short-term queue into a segment: copy first, delete last, all or nothing.
-- KEYS: place, queue, segment, segment members, segments, archive, heat, undigested of the segment, chain, stale, page
-- ARGV: page id, segment id, chain id, chain meta, keywords JSON, now, said_at,
--       segment JSON for a new segment, vector for a new segment, owner
-- Returns 'assigned', 'restarted' (assigned, but its chain lost a page: what the meta tells of that is dropped),
-- 'already' (another process was first) or 'gone' (erased meanwhile).
local page_id, segment_id = ARGV[1], ARGV[2]
local tier = redis.call('HGET', KEYS[1], 'tier')
if not tier then
  redis.call('ZREM', KEYS[2], page_id)
  return 'gone'
end
if tier ~= 'short' then
  redis.call('ZREM', KEYS[2], page_id)
  return 'already'
end
local sequence = redis.call('HGET', KEYS[11], 'sequence')
if redis.call('EXISTS', KEYS[3]) == 0 then
  redis.call('HSET', KEYS[3], 'json', ARGV[8], 'vector', ARGV[9], 'archived', 'no', 'owner', ARGV[10],
    'sequence', sequence, 'created_at', ARGV[7], 'said_at', ARGV[7])
elseif redis.call('HGET', KEYS[3], 'archived') == 'yes' then
  redis.call('HSET', KEYS[3], 'archived', 'no', 'owner', ARGV[10])
  redis.call('ZREM', KEYS[6], segment_id)
end
redis.call('ZADD', KEYS[5], redis.call('HGET', KEYS[3], 'sequence'), segment_id)
redis.call('ZADD', KEYS[4], sequence, page_id)
redis.call('HSETNX', KEYS[7], segment_id .. ':visits', 0)
redis.call('HSETNX', KEYS[7], segment_id .. ':visited', ARGV[6])
redis.call('HINCRBY', KEYS[7], segment_id .. ':interactions', redis.call('ZADD', KEYS[8], sequence, page_id))
redis.call('SADD', KEYS[10], segment_id)
local status, meta = 'assigned', ARGV[4]
if ARGV[3] ~= page_id and redis.call('EXISTS', KEYS[9]) == 0 then status, meta = 'restarted', '' end
if redis.call('HGET', KEYS[9], 'last') ~= page_id then
  redis.call('HINCRBY', KEYS[9], 'pages', 1)
end
redis.call('HSET', KEYS[9], 'meta', meta, 'last', page_id)
redis.call('HSET', KEYS[1], 'tier', 'mid', 'segment', segment_id, 'chain', ARGV[3], 'keywords', ARGV[5])
redis.call('ZREM', KEYS[2], page_id)
return status
