-- Drop running totals that do not know of hits in the tables.
--
-- KEYS: epoch, then the totals

for i = 2, #KEYS do
  redis.call('DEL', KEYS[i])
end
move_on(KEYS[1])
