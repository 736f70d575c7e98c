-- Name the sketches of some objects, without keys that others wrote.
--
-- KEYS: sketches_of per object
-- ARGV: prefix of the names of sketches
-- Returns: the names.

local found = {}
for i = 1, #KEYS do
  -- A reply that is an error has no items.
  for _, sketch in ipairs(redis.pcall('SMEMBERS', KEYS[i])) do
    if string.sub(sketch, 1, #ARGV[1]) == ARGV[1] then
      found[#found + 1] = sketch
    end
  end
end
return found
