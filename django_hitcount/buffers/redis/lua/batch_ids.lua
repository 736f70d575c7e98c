-- Read the names of batches.
--
-- KEYS: hashes of hits.
-- Returns: the name of the batch in each hash, or nil.
--
-- name_in is in batch_names.lua, which scripts.py puts before this script.

local names = {}
for i = 1, #KEYS do
  local _, _, name = name_in(KEYS[i], 'id')
  names[i] = name or false
end
return names
