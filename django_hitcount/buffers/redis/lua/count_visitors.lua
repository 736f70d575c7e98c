-- Count the visitors of one counter on some objects, by day.
--
-- KEYS: sketches_of of each object.
-- ARGV: the beginning of the names of sketches, first day, last day, counter.
-- Returns: for each object, a flat list with the field and the count of each sketch of these days.

local replies = {}
for i = 1, #KEYS do
  local found = {}
  -- A script of Redis Cluster may use these sketches although they are not in KEYS: they are in the
  -- same partition. If the reply is an error, the loop has no items.
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
