-- What few records ask for. scripts.py puts this file, and those that it needs, after record.lua.
--
-- Returns: 1 if this call brought the number of pending counters over the threshold, or 0; the total
-- of each hit, or nil; for each hit, whether it counts (COUNTS, REPEAT or ADDRESS_LIMIT); and, if a
-- total is nil, the epoch, and what held_in_runs says about these counters.

local run = match(SEQUENCE, '}:([^:]*):')

-- Name the batch that the pending hits become, when they get a field and have no name yet. So each
-- state that Redis may go back to has the name, and a claim finds the same one.
if is_unnamed then
  local _, generation, number = name_in(SEQUENCE, 'last_batch')
  if not generation then
    -- The name consists of the id of this command, so no other generation has it.
    generation, number = run .. ':' .. recorder .. ':' .. command_number, 0
    call('HSET', SEQUENCE, 'last_batch', generation .. ':0')
  end
  call('HSET', PENDING, 'id', generation .. ':' .. string.format('%.0f', number + 1))
end

-- Add the run to those that may have hits.
if is_unnamed or is_unlisted then
  local runs = text_in(RUNS) or ''
  if not string.find(' ' .. runs .. ' ', ' ' .. run .. ' ', 1, true) then
    call('SET', RUNS, runs == '' and run or runs .. ' ' .. run)
  end
end

-- The name of a sketch that begins is added to those of the object, so that both can be deleted
-- together.
for _, of_sketch in ipairs(begun or {}) do
  local sketch, sketches_of, milliseconds = unpack(of_sketch)
  forget_expired(sketches_of)
  if type(pcall('SADD', sketches_of, sketch)) == 'table' then
    call('DEL', sketches_of) -- We did not write it.
    call('SADD', sketches_of, sketch)
  end
  call('PEXPIRE', sketches_of, milliseconds)
  note_beginning(EPOCH, sketches_of, sketch)
end

local unknown = false
if #missing > 0 then
  local name = redis.sha1hex(recorder .. ':' .. command_number)
  local first = string.format('%.0f', tonumber(string.sub(name, 1, 12), 16))
  unknown = {epoch_in(EPOCH, first), held_in_runs(RUNS, PENDING, BATCH, missing)}
end
return {is_full, totals, verdicts, unknown}
