-- Functions that find hits that are not in the tables. scripts.py puts this file, after
-- foreign_values.lua, before the scripts that call them.

-- Whether no batch was claimed or settled since the caller read the epoch.
local function is_still(key, epoch)
  return (text_in(key) or '0') == epoch
end

-- The hits of a field; 0 if they are malformed, which the next flush reports.
local function held_in(hash, field)
  local hits = redis.pcall('HGET', hash, field)
  return type(hits) == 'string' and tonumber(hits) or 0
end
