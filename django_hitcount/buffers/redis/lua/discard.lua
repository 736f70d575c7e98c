-- Drop running totals that are wrong since the tables changed, and sketches of deleted objects.
--
-- KEYS: epoch; then the totals and the sketches.

for i = 2, #KEYS do
  redis.call('DEL', KEYS[i])
end
move_on(KEYS[1])
