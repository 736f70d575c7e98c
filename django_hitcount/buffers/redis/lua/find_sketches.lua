-- Find the names of the sketches of some objects.
--
-- KEYS: sketches_of of each object.
-- ARGV: the beginning of the names of sketches. We did not write names that begin differently.
-- Returns: the names.

local found = {}
for i = 1, #KEYS do
  -- If the reply is an error, the loop has no items.
  for _, sketch in ipairs(redis.pcall('SMEMBERS', KEYS[i])) do
    if string.sub(sketch, 1, #ARGV[1]) == ARGV[1] then
      found[#found + 1] = sketch
    end
  end
end
return found
