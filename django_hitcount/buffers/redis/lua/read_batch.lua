-- Read some fields of a batch.
--
-- KEYS: batch.
-- ARGV: the name of the batch; a cursor, as HSCAN takes it; how many fields to read.
-- Returns: the next cursor; then fields and values in turn. Nil if another batch or none is set
-- aside by now.
--
-- name_in is in batch_names.lua, which scripts.py puts before this script.

local _, _, name = name_in(KEYS[1], 'id')
return name == ARGV[1] and redis.call('HSCAN', KEYS[1], ARGV[2], 'COUNT', ARGV[3])
