-- Functions that read and raise running totals. scripts.py puts this file, after
-- foreign_values.lua, before the scripts that call them.

-- The running total, or false if Redis does not have it.
local function known_total(key)
  local total = redis.pcall('GET', key)
  if total and not number_in(total) then
    redis.call('DEL', key)
    return false
  end
  return total
end

-- Add to the running total, unless the caller has done so, and return the sum. Ours has a TTL. If it
-- has none, it begins here, so Redis did not know it; if the command fails, we did not write it. Then
-- drop it, and return false.
local function raise_total(key, amount, total)
  total = total or redis.pcall('INCRBY', key, amount)
  local is_known = type(total) == 'number'
  if is_known and total == tonumber(amount) then
    is_known = redis.call('TTL', key) >= 0
  end
  if not is_known then
    redis.call('DEL', key)
  end
  return is_known and total
end
