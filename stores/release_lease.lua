-- Delete a lease if it is still this owner's; an event that is finished is open no more.
-- KEYS: lease, open events; ARGV: owner, '1' if it is finished
if ARGV[2] == '1' then redis.call('SREM', KEYS[2], ARGV[1]) end
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
