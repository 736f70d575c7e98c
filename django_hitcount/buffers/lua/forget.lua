-- Drop what a partition holds of some objects, and the given keys.
--
-- KEYS: batch_id, epoch, the pending and batch hashes of totals, of days and of visitors, then
-- the totals, sketches and other keys to drop
-- ARGV: objects as 'content type id:object id'
-- Returns: the id of the batch that is set aside, or nil.
-- Walks through all that the partition holds, if there are objects.

local gone = {}
for i = 1, #ARGV do
  gone[ARGV[i]] = true
end
local patterns = {'^(%d+):[^:]*:(.*)$', '^(%d+):[^:]*:[^:]*:(.*)$', '^(%d+):[^:]*:[^:]*:[^:]*:(.*)$'}
for i = 0, #ARGV > 0 and 5 or -1 do
  local hash = KEYS[3 + i]
  for _, field in ipairs(redis.call('HKEYS', hash)) do
    local content_type, object = string.match(field, patterns[1 + i % 3])
    if content_type and gone[content_type .. ':' .. object] then
      redis.call('HDEL', hash, field)
    end
  end
end
for i = 9, #KEYS do
  redis.call('DEL', KEYS[i])
end
redis.call('INCR', KEYS[2])
return redis.call('GET', KEYS[1])
