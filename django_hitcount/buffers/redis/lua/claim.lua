-- Set the pending hits of a partition aside as a batch.
--
-- KEYS: the epoch of the current run; then, of the run that is claimed: sequence, pending, batch;
-- then runs, malformed, and the epoch of the run that is claimed. keys.py explains what a run is.
-- ARGV: a generation that is in the ledger, or ''; the run that is claimed, or '' if it is the
-- current one; how many days to remember the last command of a recorder; a number that no other
-- claim has.
-- Returns: the name of the batch that is set aside, or nil if there is nothing to flush; 1 if this
-- call set it aside, and 0 if an earlier call did; the names of keys that were moved out of the way
-- since the last claim; the generation of the pending hits if it must be in the ledger first.
--
-- The name is older than the claim: the hash has it from its first hit on. If Redis goes back to a
-- state from before the claim, the next claim finds the same name, and the ledger has it.
--
-- text_in, is_there, move_away and move_on are in foreign_values.lua, and name_in is in
-- batch_names.lua. scripts.py puts both files before this script.

local epoch, sequence, pending, batch, runs, malformed, epoch_of_run = unpack(KEYS)
local opened, earlier_run, remembered_days, claim = unpack(ARGV)
local MANY_RECORDERS = 256

-- Return the names of the keys that were moved, and clear the list of them.
local function take_moved()
  local key = malformed .. ':moved'
  local names = redis.pcall('LRANGE', key, 0, -1)
  redis.call('DEL', key)
  return names.err and {} or names
end

-- The generation, the number and the name of the batch in a hash. Moves a hash without one away: we
-- did not write it.
local function batch_in(hash)
  if not is_there(hash, 'hash', malformed) then
    return
  end
  local generation, number, name = name_in(hash, 'id')
  if not name then
    move_away(hash, malformed)
  end
  return generation, number, name
end

-- Forget recorders whose last command was long ago, once a day.
local function forget_recorders(today)
  if redis.call('HGET', sequence, 'day') == tostring(today) then
    return
  end
  redis.call('HSET', sequence, 'day', today)
  if redis.call('HLEN', sequence) <= MANY_RECORDERS then
    return
  end
  local fields = redis.call('HGETALL', sequence)
  for i = 1, #fields, 2 do
    local day = #fields[i] == 32 and tonumber(string.match(fields[i + 1], '^%d+ (%d+)$'))
    if day and day < today - remembered_days then
      redis.call('HDEL', sequence, fields[i])
    end
  end
end

-- Remove an earlier run from the list of runs: no more hits are recorded under it. Commands of it
-- may still be in doubt.
local function retire(run)
  redis.call('DEL', epoch_of_run)
  redis.call('EXPIRE', sequence, remembered_days * 24 * 3600)
  local left = {}
  for other in string.gmatch(text_in(runs) or '', '%S+') do
    if other ~= run then
      left[#left + 1] = other
    end
  end
  redis.call('SET', runs, table.concat(left, ' '))
end

local _, _, claimed = batch_in(batch)
if claimed then
  return {claimed, 0, take_moved()}
end
local generation, _, name = batch_in(pending)
if not name then
  if earlier_run ~= '' then
    retire(earlier_run)
  end
  return {false, 0, take_moved()}
end
is_there(sequence, 'hash', malformed)
if opened ~= generation and redis.call('HGET', sequence, 'opened') ~= generation then
  return {false, 0, take_moved(), generation}
end
-- A full Redis runs a script to the end if the first thing that it writes takes no memory.
redis.call('RENAME', pending, batch)
local now = redis.call('TIME')[1]
redis.call('HSET', batch, 'claimed_at', now, 'claim', claim)
forget_recorders(math.floor(now / 86400))
redis.call('HSET', sequence, 'opened', generation)
redis.call('PERSIST', sequence) -- A run that was retired may come back.
if name_in(sequence, 'last_batch') == generation then
  redis.call('HSET', sequence, 'last_batch', name, 'last_claim', claim)
end
move_on(epoch)
return {name, 1, take_moved()}
