-- Merge sketches that the table holds into one of Redis, or only for the answer.
--
-- KEYS: two keys that this script may use, then sketches of Redis
-- ARGV: seconds to keep the first sketch of Redis with all others in it ('0': do not change it),
-- then sketches
-- Returns: the number of visitors, and the first sketch of Redis if it is kept.

local scratch, given = KEYS[1], KEYS[2]
local is_kept = ARGV[1] ~= '0'
local target = is_kept and KEYS[3] or scratch
-- A full Redis lets a script go on whose first command frees memory.
redis.call('DEL', scratch, given)
if is_kept and type(redis.pcall('PFCOUNT', target)) ~= 'number' then
  redis.call('DEL', target) -- We did not write it.
end
for i = 3, #KEYS do
  -- A key that holds no sketch adds nothing.
  redis.pcall('PFMERGE', target, KEYS[i])
end
for i = 2, #ARGV do
  redis.call('SET', given, ARGV[i], 'EX', 60)
  redis.pcall('PFMERGE', target, given)
end
local count, sketch = redis.call('PFCOUNT', target), is_kept and redis.call('GET', target)
if is_kept then
  redis.call('EXPIRE', target, ARGV[1])
end
redis.call('DEL', scratch, given)
return {count, sketch}
