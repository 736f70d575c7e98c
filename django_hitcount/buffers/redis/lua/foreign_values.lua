-- Deal with keys that may be of any type. A part of other scripts.
--
-- What is in the way is moved. Data that others wrote is not deleted, and the next claim reports
-- what was moved.

local function text_in(key)
  local text = redis.pcall('GET', key)
  return type(text) == 'string' and text
end

-- A generation and a number, which name a batch; nothing for a text that we did not write.
local function batch_name_in(key)
  local generation, number = string.match(text_in(key) or '', '^([%w:]+):(%d+)$')
  if generation and #generation <= 100 and #number <= 15 and not string.match(number, '^0.') then
    return generation, number
  end
end

local function move_away(key, malformed)
  local place, n = nil, 0
  repeat
    place, n = malformed .. ':' .. key .. '#' .. n, n + 1
  until redis.call('EXISTS', place) == 0
  redis.call('RENAME', key, place)
  local moved = malformed .. ':moved'
  if type(redis.pcall('RPUSH', moved, place)) == 'table' then
    redis.call('DEL', moved)
    redis.call('RPUSH', moved, place)
  end
end

-- Make room for a key; returns whether it exists and has the type ``kind``.
local function is_there(key, kind, malformed)
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= kind then
    move_away(key, malformed)
  end
  return found == kind
end

-- Make room for the name of a batch.
local function keep_name_only(key, malformed)
  if not batch_name_in(key) and redis.call('EXISTS', key) == 1 then
    move_away(key, malformed)
  end
end

local function move_on(epoch)
  if type(redis.pcall('INCR', epoch)) == 'table' then
    redis.call('SET', epoch, '1')
  end
end
