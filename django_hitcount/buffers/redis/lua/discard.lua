-- Drop running totals that do not know what happened in the tables.
--
-- KEYS: epoch, then the totals, and the sketches of objects that are gone

for i = 2, #KEYS do
  redis.call('DEL', KEYS[i])
end
move_on(KEYS[1])
