-- Functions that read the names of batches. scripts.py puts this file, after foreign_values.lua,
-- before the scripts that call them.
--
-- A batch has a name from its first hit on, in a field of the hash that holds its hits: name and
-- hits can only be lost together. It is a generation, a colon and a number. The hash ``sequence``
-- has the name of the batch that was claimed last, and the number of the last command of each
-- recorder.

-- The generation, the number and the text of a name; nothing if we did not write the text.
local function parse_name(text)
  local generation, number = string.match(text or '', '^([%w:]+):(%d+)$')
  if generation and #generation <= 100 and #number <= 15 and not string.match(number, '^0.') then
    return generation, tonumber(number), text
  end
end

-- As parse_name, for a field of a hash.
local function name_in(hash, field)
  local text = redis.pcall('HGET', hash, field)
  return parse_name(type(text) == 'string' and text)
end

-- What Redis knows of the commands of a generation (nil: none has begun). It is the generation; '-'
-- if none has begun; 'lost' if Redis has lost hits or the sequence, and has the other.
local function known_of(generation, pending, batch)
  for _, hash in ipairs({pending, batch}) do
    if name_in(hash, 'id') ~= generation and redis.call('EXISTS', hash) == 1 then
      return 'lost'
    end
  end
  return generation or '-'
end
