-- Drop a batch that the tables hold.
--
-- KEYS: batch, batch_daily, batch_id, epoch, malformed
-- ARGV: id of the batch, then the fields to set aside as malformed
-- Returns: 1, or 0 if this is not the batch that is set aside.

if redis.call('GET', KEYS[3]) ~= ARGV[1] then
  return 0
end
local malformed = {}
for i = 2, #ARGV do
  local value = redis.call('HGET', KEYS[1], ARGV[i]) or redis.call('HGET', KEYS[2], ARGV[i])
  if value then
    malformed[#malformed + 1] = {ARGV[i], value}
  end
end
-- First what frees memory: a full Redis lets a script go on that has begun to write.
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3])
for _, pair in ipairs(malformed) do
  redis.call('HSET', KEYS[5], pair[1] .. '#' .. redis.call('HLEN', KEYS[5]), pair[2])
end
redis.call('INCR', KEYS[4])
return 1
