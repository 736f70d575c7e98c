-- Set the pending hits of a partition aside as a batch.
--
-- KEYS: the epoch of the current run; then, of the run that is claimed: batch_id, sequence, the
-- five pending hashes, the five batch hashes; then runs, malformed, and the epoch of the run that
-- is claimed. keys.py explains what a run is.
-- ARGV: a generation, in case the sequence is lost; the run that is claimed, or '' if it is the
-- current one.
-- Returns: the id of the batch that is set aside, or nil if there is nothing to flush; 1 if this
-- call set it aside, and 0 if an earlier call did; the names of keys that were moved out of the way
-- since the last claim.
--
-- The id is derived from the sequence, which Redis keeps together with the hits. If Redis goes back
-- to a state from before the claim, the next claim makes the same id, and the ledger has it.
--
-- text_in, batch_name_in, is_there, keep_name_only and move_on are in foreign_values.lua, which
-- scripts.py puts before this script.

local epoch, batch_id, sequence, batch_models = KEYS[1], KEYS[2], KEYS[3], KEYS[13]
local runs, malformed, epoch_of_run = unpack(KEYS, 14, 16)
local KINDS = 5
local earlier_run = ARGV[2]

-- Whether one of the hashes of all kinds exists.
local function are_there(first)
  local found = false
  for i = first, first + KINDS - 1 do
    found = is_there(KEYS[i], 'hash', malformed) or found
  end
  return found
end

-- Return the names of the keys that were moved, and clear the list of them.
local function take_moved()
  local key = malformed .. ':moved'
  local names = redis.pcall('LRANGE', key, 0, -1)
  redis.call('DEL', key)
  return names.err and {} or names
end

-- Write the id of the batch. The next id is greater by number_of_claims than the last one.
local function set_aside(number_of_claims)
  local generation, claims = batch_name_in(sequence)
  generation = generation or ARGV[1]
  local id = generation .. ':' .. string.format('%.0f', tonumber(claims or 0) + number_of_claims)
  redis.call('SET', sequence, id)
  redis.call('SET', batch_id, id)
  redis.call('HSETNX', batch_models, 'claimed_at', redis.call('TIME')[1])
  move_on(epoch)
  return id
end

-- Remove an earlier run from the list of runs: no more hits are recorded under it.
local function retire(run)
  redis.call('DEL', sequence, epoch_of_run)
  local left = {}
  for other in string.gmatch(text_in(runs) or '', '%S+') do
    if other ~= run then
      left[#left + 1] = other
    end
  end
  redis.call('SET', runs, table.concat(left, ' '))
end

local has_pending, has_batch = are_there(4), are_there(4 + KINDS)
if batch_name_in(batch_id) then
  -- Return it even if its hashes are lost: a flusher may have read them already.
  return {text_in(batch_id), 0, take_moved()}
end
keep_name_only(batch_id, malformed)
keep_name_only(sequence, malformed)
redis.call('DEL', batch_id) -- A full Redis runs a script to the end if it first frees memory.
if has_batch then
  return {set_aside(0), 0, take_moved()}
elseif has_pending then
  for i = 4, 3 + KINDS do
    if redis.call('EXISTS', KEYS[i]) == 1 then
      redis.call('RENAME', KEYS[i], KEYS[i + KINDS])
    end
  end
  return {set_aside(1), 1, take_moved()}
end
if earlier_run ~= '' then
  retire(earlier_run)
end
return {false, 0, take_moved()}
