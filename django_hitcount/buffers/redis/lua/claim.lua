-- Set the pending hits of a partition aside as a batch: first those of earlier runs, one at a time.
--
-- KEYS: runs, malformed; of the current run, pending and epoch. keys.py explains what a run is.
-- ARGV: a generation that is in the ledger, or ''; for how many seconds to remember the last command
-- of a recorder; a number that no other claim has.
-- Returns: the new names of foreign values; the run whose hits are set aside, or nil if there is
-- nothing to flush; the name of the batch; 1 if this call set it aside, and 0 if an earlier call did.
-- If the generation of pending hits must be in the ledger first, returns its name after the run.
--
-- The name is older than the claim: the hash has it from its first hit on. If Redis goes back to a
-- state from before the claim, the next claim finds the same name, and the ledger has it.

local runs, malformed, pending_of_current, epoch = unpack(KEYS)
local opened, remembered_seconds, claim = unpack(ARGV)
local MANY_RECORDERS = 256

-- Somebody else may have written a value in place of a hash, or a hash without a name of ours. It is
-- moved to another name, and not deleted.
local moved = {}
local function move_foreign(key, must_have_name)
  local kind = redis.call('TYPE', key).ok
  if kind ~= 'none' and (kind ~= 'hash' or must_have_name and not name_in(key, 'id')) then
    local place = malformed .. ':' .. key .. '#' .. claim
    redis.call('RENAME', key, place)
    moved[#moved + 1] = place
  end
end

-- No more hits are recorded under an earlier run. Commands of it may still be in doubt.
local function retire(run, sequence, epoch_of_run)
  redis.call('DEL', epoch_of_run)
  redis.call('EXPIRE', sequence, remembered_seconds)
  local left = {}
  for other in string.gmatch(text_in(runs), '%w+') do
    left[#left + 1] = other ~= run and other or nil
  end
  redis.call('SET', runs, table.concat(left, ' '))
end

-- Once a day, forget recorders whose last command was long ago.
local function forget_recorders(sequence, now)
  local today = tostring(math.floor(now / 86400))
  if redis.call('HGET', sequence, 'day') == today then
    return
  end
  redis.call('HSET', sequence, 'day', today)
  local fields = redis.call('HLEN', sequence) > MANY_RECORDERS and redis.call('HGETALL', sequence) or {}
  for i = 1, #fields, 2 do
    local last_at = #fields[i] == 32 and tonumber(string.match(fields[i + 1], '^%d+ (%d+)$'))
    if last_at and last_at < now - remembered_seconds then
      redis.call('HDEL', sequence, fields[i])
    end
  end
end

move_foreign(malformed)
local all_pending = in_all_runs(runs, pending_of_current)
for i = #all_pending, 1, -1 do
  local pending = all_pending[i]
  local prefix, run = string.match(pending, '^(.*:(%w+):)pending$')
  local batch, sequence = prefix .. 'batch', prefix .. 'sequence'
  move_foreign(sequence)
  move_foreign(pending, true)
  move_foreign(batch, true)
  local claimed = name_in(batch, 'id')
  if claimed then
    return {moved, run, claimed, 0}
  end
  local name, generation = name_in(pending, 'id')
  if name then
    if opened ~= generation and redis.call('HGET', sequence, 'opened') ~= generation then
      return {moved, run, generation}
    end
    -- A full Redis runs a script to the end if the first thing that it writes takes no memory.
    redis.call('RENAME', pending, batch)
    local now = redis.call('TIME')[1]
    redis.call('HSET', batch, 'claimed_at', now, 'claim', claim)
    forget_recorders(sequence, now)
    local _, of_sequence = name_in(sequence, 'last_batch')
    if of_sequence == generation then
      redis.call('HSET', sequence, 'last_batch', name, 'last_claim', claim)
    end
    redis.call('HSET', sequence, 'opened', generation)
    redis.call('PERSIST', sequence) -- A run that was retired may come back.
    redis.call('DEL', epoch)
    return {moved, run, name, 1}
  end
  if pending ~= pending_of_current then
    retire(run, sequence, prefix .. 'epoch')
  end
end
return {moved, false, false}
