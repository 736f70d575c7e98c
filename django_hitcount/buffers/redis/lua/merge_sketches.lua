-- Merge sketches in Redis and sketches of the table, to keep the result or only to count it.
--
-- KEYS: two names for temporary keys; then sketches in Redis.
-- ARGV: how many seconds to keep the result in the first of these sketches ('0': only count); then
-- sketches of the table.
-- Returns: the number of visitors; the result if it is kept.

local scratch, given, first = unpack(KEYS, 1, 3)
local is_kept = ARGV[1] ~= '0'
local target = is_kept and first or scratch
-- A full Redis runs a script to the end if it first frees memory.
redis.call('DEL', scratch, given)
for i = 2, #ARGV do
  merge_given(target, given, ARGV[i])
end
for i = 3, #KEYS do
  redis.pcall('PFMERGE', target, KEYS[i]) -- A key that is not a sketch adds nothing.
end
local reply = {redis.call('PFCOUNT', target), is_kept and redis.call('GET', target)}
if is_kept then
  redis.call('EXPIRE', target, ARGV[1])
end
redis.call('DEL', scratch)
return reply
