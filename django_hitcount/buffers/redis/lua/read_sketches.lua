-- Read sketches to flush them.
--
-- KEYS: pending; then the sketches.
-- ARGV: the field of each sketch in pending.
-- Returns: for each sketch, the number of visitors, the sketch, and 1 if it was begun since the
-- batch was claimed, or 0; nil for a key that has expired or is not a sketch.

local replies = {}
for i = 2, #KEYS do
  local count = redis.pcall('PFCOUNT', KEYS[i])
  replies[i - 1] = false
  if type(count) == 'number' and count > 0 then
    local is_begun = redis.pcall('HGET', KEYS[1], ARGV[i - 1]) == '1'
    replies[i - 1] = {count, redis.call('GET', KEYS[i]), is_begun and 1 or 0}
  end
end
return replies
