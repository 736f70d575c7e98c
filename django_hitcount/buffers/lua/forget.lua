-- Drop what a partition holds of some objects, and the given totals.
--
-- KEYS: pending, pending_daily, batch, batch_daily, epoch, batch_id, then the totals to drop
-- ARGV: objects as 'content type id:object id'
-- Returns: the id of the batch that is set aside, or nil.
-- Walks through all that the partition holds, if there are objects.

local gone = {}
for i = 1, #ARGV do
  gone[ARGV[i]] = true
end
local patterns = {'^(%d+):[^:]*:(.*)$', '^(%d+):[^:]*:[^:]*:(.*)$'}
for i = 1, #ARGV > 0 and 4 or 0 do
  for _, field in ipairs(redis.call('HKEYS', KEYS[i])) do
    local content_type, object = string.match(field, patterns[2 - i % 2])
    if content_type and gone[content_type .. ':' .. object] then
      redis.call('HDEL', KEYS[i], field)
    end
  end
end
for i = 7, #KEYS do
  redis.call('DEL', KEYS[i])
end
redis.call('INCR', KEYS[5])
return redis.call('GET', KEYS[6])
