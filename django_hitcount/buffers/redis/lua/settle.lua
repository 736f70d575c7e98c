-- Drop a batch that is in the tables.
--
-- KEYS: batch, the epoch of the current run, malformed.
-- ARGV: the name of the batch; then its malformed fields, which move to malformed.
-- Returns: 1, or 0 if another batch or none is set aside.

local batch, epoch, malformed = unpack(KEYS)
if name_in(batch, 'id') ~= ARGV[1] then
  return 0
end
local number, values = redis.call('HLEN', malformed), {} -- Fails if somebody else wrote a value there.
for i = 2, #ARGV do
  values[i] = redis.call('HGET', batch, ARGV[i])
end
-- Free memory first. Then a full Redis runs the script to the end.
redis.call('UNLINK', batch)
for i = 2, #ARGV do
  if values[i] then
    redis.call('HSET', malformed, ARGV[i] .. '#' .. number, values[i])
    number = number + 1
  end
end
redis.call('DEL', epoch) -- Who has read the malformed fields as hits must not keep the sum.
return 1
