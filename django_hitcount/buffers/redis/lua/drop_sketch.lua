-- Drop a sketch if all its visitors are known.
--
-- KEYS: epoch; two names for temporary keys; the sketch.
-- ARGV: a sketch of those who are known.
--
-- merge_given is in sketches.lua, which scripts.py puts before this script.

local EPOCH, KNOWN, GIVEN, SKETCH = unpack(KEYS)
-- A full Redis runs a script to the end if it first frees memory.
redis.call('DEL', KNOWN, GIVEN)
merge_given(KNOWN, GIVEN, ARGV[1])
local known = redis.call('PFCOUNT', KNOWN)
if redis.pcall('PFCOUNT', KNOWN, SKETCH) == known then
  -- Who has read the table before may put its visitors into the sketch, but not in the next epoch.
  redis.call('DEL', SKETCH, EPOCH)
end
redis.call('DEL', KNOWN)
