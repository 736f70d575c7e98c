-- Read running totals of a partition, and where it is between claims and settles.
--
-- KEYS: batch, epoch, runs; then the totals.
-- ARGV: a number to begin the epoch with, if there is none.
-- Returns: the name of the batch that is set aside; then the other values, nil where there is none.
--
-- epoch_in is in foreign_values.lua, and name_in is in batch_names.lua. scripts.py puts both files
-- before this script.

local AT_A_TIME = 1000 -- Lua cannot pass more than some thousand arguments.

local _, _, claimed = name_in(KEYS[1], 'id')
local reply = {claimed or false}
epoch_in(KEYS[2], ARGV[1])
for i = 2, #KEYS, AT_A_TIME do
  local values = redis.call('MGET', unpack(KEYS, i, math.min(i + AT_A_TIME - 1, #KEYS)))
  for _, value in ipairs(values) do
    reply[#reply + 1] = value
  end
end
return reply
