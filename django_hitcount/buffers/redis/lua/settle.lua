-- Drop a batch that the tables hold.
--
-- KEYS: batch_id, epoch of the current run, malformed, the four batch hashes
-- ARGV: id of the batch, then the fields to set aside as malformed
-- Returns: 1, or 0 if this is not the batch that is set aside.

if text_in(KEYS[1]) ~= ARGV[1] then
  return 0
end
local malformed = {}
for i = 2, #ARGV do
  for hash = 4, 7 do
    local value = redis.call('HGET', KEYS[hash], ARGV[i])
    if value then
      malformed[#malformed + 1] = {ARGV[i], value}
      break
    end
  end
end
-- Free memory first: a full Redis lets a script go on that has begun to write.
redis.call('UNLINK', KEYS[1], KEYS[4], KEYS[5], KEYS[6], KEYS[7])
is_there(KEYS[3], 'hash', KEYS[3])
for _, pair in ipairs(malformed) do
  redis.call('HSET', KEYS[3], pair[1] .. '#' .. redis.call('HLEN', KEYS[3]), pair[2])
end
move_on(KEYS[2])
return 1
