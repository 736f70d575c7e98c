-- Keep what is needed to count a range of days without the table, and count it: see sketches.lua.
--
-- The sketches of open days get the visitors of the table, as Redis may have lost them.
--
-- KEYS: epoch; sketches_of and the hash of kept numbers of the object; a name for a temporary key;
-- then sketches of open days.
-- ARGV: the epoch before the table was read; how many seconds to keep the range, and sketches; the
-- range, and that of its open days; the visitors and spans of its closed days; then what the table
-- has of each sketch, or ''.
-- Returns: what count_kept returns; nil if something has happened since the table was read. Then
-- nothing is kept.

local EPOCH, SKETCHES_OF, KEPT, GIVEN = unpack(KEYS, 1, 4)
local epoch, seconds, sketch_seconds, range, open_days, closed = unpack(ARGV, 1, 6)
if text_in(EPOCH) ~= epoch then
  return false
end
local is_given = {}
for i = 5, #KEYS do
  is_given[KEYS[i]] = true
end
for _, name in ipairs(find_sketches(redis.pcall('SMEMBERS', SKETCHES_OF), open_days)) do
  if not is_given[name] and redis.call('EXISTS', name) == 1 then
    return false -- It has begun since the caller looked.
  end
end
-- A full Redis runs a script to the end if it first frees memory.
redis.call('DEL', GIVEN)
if type(redis.pcall('HLEN', KEPT)) ~= 'number' then
  redis.call('DEL', KEPT) -- We did not write it.
end
redis.call('HSET', KEPT, range, closed)
redis.call('EXPIRE', KEPT, seconds)
for i = 5, #KEYS do
  redis.call('HSET', KEPT, KEYS[i], '')
  if ARGV[i + 2] ~= '' then
    merge_given(KEYS[i], GIVEN, ARGV[i + 2])
    redis.pcall('SADD', SKETCHES_OF, KEYS[i])
    if redis.call('TTL', KEYS[i]) < 0 then
      redis.call('EXPIRE', KEYS[i], sketch_seconds)
    end
    redis.call('EXPIRE', SKETCHES_OF, sketch_seconds)
  end
end
local reply = count_kept(KEPT, range, open_days)
if reply[1] == 0 then
  redis.call('DEL', KEPT) -- Redis has lost a sketch in it, which the table never had.
end
return reply
