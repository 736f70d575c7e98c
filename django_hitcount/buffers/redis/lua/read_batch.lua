-- Read some fields of a batch.
--
-- KEYS: batch.
-- ARGV: the name of the batch; a cursor, as HSCAN takes it; how many fields to read.
-- Returns: the next cursor; then fields and values in turn. Nil if another batch or none is set
-- aside by now.

return name_in(KEYS[1], 'id') == ARGV[1] and redis.call('HSCAN', KEYS[1], ARGV[2], 'COUNT', ARGV[3])
