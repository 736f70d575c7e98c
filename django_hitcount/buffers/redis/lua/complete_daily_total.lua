-- Add up the hits that a partition holds of one counter on some days.
--
-- KEYS: epoch; then the daily hashes whose hits were not in the tables when these were read.
-- ARGV: the epoch before the tables were read; then the daily fields.
-- Returns: the hits; nil if the partition was claimed or settled since.
--
-- is_still and held_in are in held_hits.lua, which scripts.py puts before this script.

if not is_still(KEYS[1], ARGV[1]) then
  return false
end
local hits = 0
for i = 2, #ARGV do
  for hash = 2, #KEYS do
    hits = hits + held_in(KEYS[hash], ARGV[i])
  end
end
return string.format('%.0f', hits)
