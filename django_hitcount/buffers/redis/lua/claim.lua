-- Set the pending hits of a partition aside as a batch.
--
-- KEYS: the epoch of the current run; then, of the run that is claimed: sequence, pending, batch;
-- then runs, malformed, and the epoch of the run that is claimed. keys.py explains what a run is.
-- ARGV: a generation that is in the ledger, or ''; the run that is claimed, or '' if it is the
-- current one; for how many seconds to remember the last command of a recorder; a number that no
-- other claim has.
-- Returns: the name of the batch that is set aside, or nil if there is nothing to flush; 1 if this
-- call set it aside, and 0 if an earlier call did; the new names of foreign values; the generation
-- of the pending hits if it must be in the ledger first.
--
-- The name is older than the claim: the hash has it from its first hit on. If Redis goes back to a
-- state from before the claim, the next claim finds the same name, and the ledger has it.

local epoch, sequence, pending, batch, runs, malformed, epoch_of_run = unpack(KEYS)
local opened, earlier_run, remembered_seconds, claim = unpack(ARGV)
local MANY_RECORDERS = 256

-- Somebody else may have written a value in place of a hash, or a hash without a name of ours. It is
-- moved to another name, and not deleted.
local moved = {}
for _, key in ipairs({sequence, malformed, pending, batch}) do
  local kind = redis.call('TYPE', key).ok
  local must_have_name = key == pending or key == batch
  if kind ~= 'none' and (kind ~= 'hash' or must_have_name and not name_in(key, 'id')) then
    local place = malformed .. ':' .. key .. '#' .. claim
    redis.call('RENAME', key, place)
    moved[#moved + 1] = place
  end
end

local claimed = name_in(batch, 'id')
if claimed then
  return {claimed, 0, moved}
end
local name, generation = name_in(pending, 'id')
if not name then
  if earlier_run ~= '' then
    -- No more hits are recorded under it. Commands of it may still be in doubt.
    redis.call('DEL', epoch_of_run)
    redis.call('EXPIRE', sequence, remembered_seconds)
    local left = {}
    for run in string.gmatch(text_in(runs) or '', '%S+') do
      left[#left + 1] = run ~= earlier_run and run or nil
    end
    redis.call('SET', runs, table.concat(left, ' '))
  end
  return {false, 0, moved}
end
if opened ~= generation and redis.call('HGET', sequence, 'opened') ~= generation then
  return {false, 0, moved, generation}
end
-- A full Redis runs a script to the end if the first thing that it writes takes no memory.
redis.call('RENAME', pending, batch)
local now = redis.call('TIME')[1]
redis.call('HSET', batch, 'claimed_at', now, 'claim', claim)

-- Once a day, forget recorders whose last command was long ago.
local today = tostring(math.floor(now / 86400))
if redis.call('HGET', sequence, 'day') ~= today then
  redis.call('HSET', sequence, 'day', today)
  local fields = redis.call('HLEN', sequence) > MANY_RECORDERS and redis.call('HGETALL', sequence) or {}
  for i = 1, #fields, 2 do
    local last_at = #fields[i] == 32 and tonumber(string.match(fields[i + 1], '^%d+ (%d+)$'))
    if last_at and last_at < now - remembered_seconds then
      redis.call('HDEL', sequence, fields[i])
    end
  end
end

local _, of_sequence = name_in(sequence, 'last_batch')
if of_sequence == generation then
  redis.call('HSET', sequence, 'last_batch', name, 'last_claim', claim)
end
redis.call('HSET', sequence, 'opened', generation)
redis.call('PERSIST', sequence) -- A run that was retired may come back.
redis.call('DEL', epoch)
return {name, 1, moved}
