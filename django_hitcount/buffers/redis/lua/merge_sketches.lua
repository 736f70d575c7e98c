-- Merge sketches in Redis and sketches of the table, to keep the result or only to count it.
--
-- KEYS: two names for temporary keys; then sketches in Redis.
-- ARGV: how many seconds to keep the result in the first of these sketches ('0': only count); then
-- sketches of the table.
-- Returns: the number of visitors; the result if it is kept.

local scratch, given = KEYS[1], KEYS[2]
local is_kept = ARGV[1] ~= '0'
local target = is_kept and KEYS[3] or scratch
-- A full Redis runs a script to the end if it first frees memory.
redis.call('DEL', scratch, given)
if is_kept and type(redis.pcall('PFCOUNT', target)) ~= 'number' then
  redis.call('DEL', target) -- We did not write it.
end
for i = 3, #KEYS do
  -- A key that is not a sketch adds nothing.
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
