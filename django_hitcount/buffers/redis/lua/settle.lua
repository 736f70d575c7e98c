-- Drop a batch that is in the tables.
--
-- KEYS: batch, the epoch of the current run, malformed.
-- ARGV: the name of the batch; then the malformed fields to set aside.
-- Returns: 1, or 0 if another batch or none is set aside.
--
-- is_there and move_on are in foreign_values.lua, and name_in is in batch_names.lua. scripts.py
-- puts both files before this script.

local batch, epoch, aside = unpack(KEYS)
local _, _, name = name_in(batch, 'id')
if name ~= ARGV[1] then
  return 0
end
local malformed = {}
for i = 2, #ARGV do
  local value = redis.call('HGET', batch, ARGV[i])
  if value then
    malformed[#malformed + 1] = {ARGV[i], value}
  end
end
-- Free memory first. Then a full Redis runs the script to the end.
redis.call('UNLINK', batch)
is_there(aside, 'hash', aside)
for _, pair in ipairs(malformed) do
  redis.call('HSET', aside, pair[1] .. '#' .. redis.call('HLEN', aside), pair[2])
end
move_on(epoch)
return 1
