-- Find out which commands a partition has run, of those that were sent to it in one run.
--
-- KEYS: sequence, pending, batch.
-- ARGV: recorders.
-- Returns: what Redis knows, as known_of says; the number of the last batch that was claimed, and
-- that of the claim; 1 if a batch is set aside, or 0; then the number of the last command of each
-- recorder.
--
-- parse_name and known_of are in batch_names.lua, which scripts.py puts before this script.

local sequence, pending, batch = unpack(KEYS)
local generation, number = name_in(sequence, 'last_batch')
local claim = redis.pcall('HGET', sequence, 'last_claim')
local reply = {
  known_of(generation, pending, batch), number or 0,
  type(claim) == 'string' and string.match(claim, '^%d+$') or '0',
  redis.call('EXISTS', batch),
}
for _, recorder in ipairs(ARGV) do
  local last = redis.pcall('HGET', sequence, recorder)
  reply[#reply + 1] = type(last) == 'string' and tonumber(string.match(last, '^%d+')) or 0
end
return reply
