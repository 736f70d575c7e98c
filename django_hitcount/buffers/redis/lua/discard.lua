-- Drop what is wrong since the tables changed.
--
-- KEYS: epoch; then running totals and hashes of kept numbers.

redis.call('DEL', unpack(KEYS))
