-- Find out whether a partition has run a command that was sent to it in one run.
--
-- KEYS: sequence, pending, batch.
-- ARGV: the recorder of the command.
-- Returns: what Redis knows, as known_of says, or '' while there is a foreign value in place of a
-- key; the number of the last batch that was claimed, and that of the claim; 1 if a batch is set
-- aside, or 0; the number of the last command of the recorder.

local sequence, pending, batch = unpack(KEYS)
local state, number = known_of(sequence, pending, batch)
for _, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key).ok
  state = (kind == 'hash' or kind == 'none') and state or ''
end
local found = redis.pcall('HMGET', sequence, 'last_claim', ARGV[1])
return {
  state, number, string.match(found[1] or '', '^%d+$') or '0', redis.call('EXISTS', batch),
  tonumber(string.match(found[2] or '', '^%d+')) or 0,
}
