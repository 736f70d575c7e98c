-- Read running totals of a partition, and where it is between claims and settles.
--
-- KEYS: batch, epoch, runs; then the totals.
-- Returns: the name of the batch that is set aside; then the other values, nil where there is none.
--
-- name_in is in batch_names.lua, which scripts.py puts before this script.

local _, _, claimed = name_in(KEYS[1], 'id')
return {claimed or false, unpack(redis.call('MGET', unpack(KEYS, 2)))}
