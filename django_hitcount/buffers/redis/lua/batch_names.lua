-- Functions that read the names of batches. scripts.py puts this file before all scripts.
--
-- A batch has a name from its first hit on, in a field of the hash that holds its hits: name and
-- hits can only be lost together. It is a generation, a colon and a number; with the partition, that
-- is the BatchId of Python. The hash ``sequence`` has the name of the batch that was claimed last,
-- and the number of the last command of each recorder.

-- The name in a field of a hash, its generation and its number; nothing if we did not write it.
local function name_in(hash, field)
  local name = redis.pcall('HGET', hash, field)
  local generation, number = string.match(type(name) == 'string' and name or '', '^([%w:]+):(%d+)$')
  if generation and #generation <= 100 and #number <= 15 and not string.match(number, '^0.') then
    return name, generation, tonumber(number)
  end
end

-- What Redis knows of the commands of a run: the generation; '-' if none has begun; 'lost' if Redis
-- has lost hits or the sequence, and has the other. Then the number of the last batch.
local function known_of(sequence, pending, batch)
  local _, generation, number = name_in(sequence, 'last_batch')
  for _, hash in ipairs({pending, batch}) do
    local _, of_hits = name_in(hash, 'id')
    if of_hits ~= generation and redis.call('EXISTS', hash) == 1 then
      return 'lost', number or 0
    end
  end
  return generation or '-', number or 0
end
