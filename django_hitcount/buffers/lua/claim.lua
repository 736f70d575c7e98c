-- Set the pending hits of a partition aside as a batch.
--
-- KEYS: batch_id, epoch, the four pending hashes, the four batch hashes
-- ARGV: id for a new batch
-- Returns: the id of the batch that is set aside now, which is an older one if its flusher
-- died; nil if there is nothing to flush.

local id = redis.call('GET', KEYS[1])
if id then
  return id
end
local found = false
for i = 3, 6 do
  if redis.call('EXISTS', KEYS[i]) == 1 then
    redis.call('RENAME', KEYS[i], KEYS[i + 4])
    found = true
  end
end
if not found then
  return false
end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('INCR', KEYS[2])
return ARGV[1]
