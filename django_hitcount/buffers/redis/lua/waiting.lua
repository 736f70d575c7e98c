-- Read what waits in a partition.
--
-- KEYS: pending, batch.
-- Returns: how many counters wait; then, in seconds since 1970 or nil, when the first pending hit
-- came, when the first one of the batch came, and when the batch was claimed.

-- A number that we wrote, of at most ten digits; false if there is none.
local function number_in(hash, field)
  local text = redis.pcall('HGET', hash, field)
  local is_ours = type(text) == 'string' and string.match(text, '^%d+$') and #text <= 10
  return is_ours and tonumber(text) or false
end

return {
  (number_in(KEYS[1], 'counters') or 0) + (number_in(KEYS[2], 'counters') or 0),
  number_in(KEYS[1], 'since'), number_in(KEYS[2], 'since'), number_in(KEYS[2], 'claimed_at'),
}
