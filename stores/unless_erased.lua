-- Carry out commands, unless the user was erased meanwhile.
-- KEYS: erasures, the key of each command; ARGV: expected erasures or '', each command as a JSON list
-- Returns 1 when they were carried out, else 0.
if ARGV[1] ~= '' and (redis.call('GET', KEYS[1]) or '0') ~= ARGV[1] then return 0 end
for i = 2, #ARGV do redis.call(unpack(cjson.decode(ARGV[i]))) end
return 1
