-- Count the fields of hashes.
--
-- KEYS: the hashes.
-- Returns: a number for each hash; 0 for a key that does not exist or has another type.

local sizes = {}
for i = 1, #KEYS do
  local size = redis.pcall('HLEN', KEYS[i])
  sizes[i] = type(size) == 'number' and size or 0
end
return sizes
