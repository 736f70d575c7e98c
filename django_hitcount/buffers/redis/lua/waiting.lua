-- Read what waits in a partition.
--
-- KEYS: pending, batch.
-- Returns: how many counters wait; then, in seconds since 1970 or nil, when the first pending hit
-- came, when the first one of the batch came, and when the batch was claimed.

-- A number that we wrote, of at most ten digits; false if there is none.
local function count_or_moment(hash, field)
  local text = redis.pcall('HGET', hash, field)
  local is_ours = type(text) == 'string' and string.match(text, '^%d+$') and #text <= 10
  return is_ours and tonumber(text) or false
end

local pending, batch = unpack(KEYS)
return {
  (count_or_moment(pending, 'counters') or 0) + (count_or_moment(batch, 'counters') or 0),
  count_or_moment(pending, 'since'), count_or_moment(batch, 'since'),
  count_or_moment(batch, 'claimed_at'),
}
