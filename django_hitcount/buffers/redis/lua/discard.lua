-- Drop what is wrong since the tables changed, and sketches of deleted objects.
--
-- KEYS: epoch; then running totals and hashes of kept numbers, or what is of a deleted object.
-- ARGV: of deleted objects, the beginning of the names of sketches. Sets among KEYS have their
-- names. We did not write those that begin differently.

for i = 2, #KEYS do
  -- If it is not a set, the reply is an error, and the loop has no items.
  for _, name in ipairs(ARGV[1] and redis.pcall('SMEMBERS', KEYS[i]) or {}) do
    if string.sub(name, 1, #ARGV[1]) == ARGV[1] then
      redis.call('DEL', name)
    end
  end
  redis.call('DEL', KEYS[i])
end
redis.call('DEL', KEYS[1])
