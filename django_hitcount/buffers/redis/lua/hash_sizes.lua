-- Count the fields of hashes.
--
-- KEYS: the hashes
-- Returns: a number per hash; 0 for a key that does not exist or holds no hash.

local sizes = {}
for i = 1, #KEYS do
  local size = redis.pcall('HLEN', KEYS[i])
  sizes[i] = type(size) == 'number' and size or 0
end
return sizes
