-- Add up what a partition holds of one counter on some days.
--
-- KEYS: epoch, pending_daily, batch_daily
-- ARGV: epoch when the slots were read, '1' if the batch was in the ledger then, then the
-- daily fields
-- Returns: the hits; nil if the partition was claimed or settled since.

if (redis.call('GET', KEYS[1]) or '0') ~= ARGV[1] then
  return false
end
local hits = 0
for i = 3, #ARGV do
  hits = hits + (tonumber(redis.call('HGET', KEYS[2], ARGV[i])) or 0)
  if ARGV[2] ~= '1' then
    hits = hits + (tonumber(redis.call('HGET', KEYS[3], ARGV[i])) or 0)
  end
end
return string.format('%.0f', hits)
