-- Read what waits in a partition.
--
-- KEYS: the pending hits by counter, and by model; then those of the batch.
-- Returns: how many counters wait; then, in seconds since 1970 or nil, when the first pending hit
-- came, when the first one of the batch came, and when the batch was claimed.

local function size(hash)
  local found = redis.pcall('HLEN', hash)
  return type(found) == 'number' and found or 0
end

-- A moment; false if there is none, or if we did not write it. We write ten digits.
local function moment(hash, field)
  local seconds = redis.pcall('HGET', hash, field)
  local is_ours = type(seconds) == 'string' and string.match(seconds, '^%d+$') and #seconds <= 10
  return is_ours and tonumber(seconds) or false
end

return {
  size(KEYS[1]) + size(KEYS[3]),
  moment(KEYS[2], 'since'), moment(KEYS[4], 'since'), moment(KEYS[4], 'claimed_at'),
}
