-- Read the hits of counters that a partition holds from an earlier run.
--
-- KEYS: batch, pending.
-- ARGV: for each counter, its content type and name (as in 5:views), and its object id.
-- Returns: what held_of says of the batch, and of the pending hits.
--
-- held_of is in held_hits.lua. scripts.py puts this file, and those that it needs, before this
-- script.

return {held_of(KEYS[1], ARGV), held_of(KEYS[2], ARGV)}
