-- Count the visitors of some objects that Redis knows.
--
-- KEYS: sketches_of per object
-- ARGV: prefix of the names of sketches, first day, last day, counter
-- Returns: per object, a flat list of field and count of each sketch of these days.

local replies = {}
for i = 1, #KEYS do
  local found = {}
  -- The sketches of an object are all in the partition of this key. A reply that is an error
  -- has no items.
  for _, sketch in ipairs(redis.pcall('SMEMBERS', KEYS[i])) do
    local field = string.sub(sketch, #ARGV[1] + 1)
    local counter, day = string.match(field, '^%d+:([^:]*):([^:]*):')
    if counter == ARGV[4] and ARGV[2] <= day and day <= ARGV[3] then
      local count = redis.pcall('PFCOUNT', sketch)
      if type(count) == 'number' and count > 0 then
        found[#found + 1] = field
        found[#found + 1] = count
      end
    end
  end
  replies[i] = found
end
return replies
