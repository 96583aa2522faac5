-- Lay a new vector aside, in a key of its own: any change of a searched document would count it again in BM25.
-- KEYS: document, staged; ARGV: mark, vector
-- Returns 0 when the document was erased meanwhile.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[2], 'of', ARGV[1], 'vector', ARGV[2])
return 1
