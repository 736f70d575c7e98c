-- Functions that handle foreign values: keys that somebody else wrote, of any type. scripts.py puts
-- this file before the scripts that call them.
--
-- A foreign value under a name that we need is moved to another name. It is not deleted, since we
-- did not write it. The next claim reports what was moved.

-- The text of a key, or false.
local function text_in(key)
  local text = redis.pcall('GET', key)
  return type(text) == 'string' and text
end

-- A text if it is a whole number that we may have written, or false.
local function number_in(text)
  return type(text) == 'string' and #text <= 20 and string.match(text, '^-?%d+$') or false
end

-- Move a foreign value to a new name, and note the name for the next claim.
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

-- Whether a key exists and has the type kind. Moves a value of another type away.
local function is_there(key, kind, malformed)
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= kind then
    move_away(key, malformed)
  end
  return found == kind
end

-- Move a field that is not a number to the malformed fields.
local function move_field_away(hash, field, malformed)
  if is_there(hash, 'hash', malformed) then
    is_there(malformed, 'hash', malformed)
    local place = field .. '#' .. redis.call('HLEN', malformed)
    redis.call('HSET', malformed, place, redis.call('HGET', hash, field))
    redis.call('HDEL', hash, field)
  end
end

-- The epoch of a partition. If there is none, begins with the number ``first``, which is used only
-- once: after Redis has lost its memory, no epoch is one that a reader knows from before. A full or
-- read-only Redis keeps none.
local function epoch_in(key, first)
  local epoch = text_in(key)
  if not epoch then
    epoch = first
    redis.pcall('SET', key, first)
  end
  return epoch
end

-- Raise the epoch of a partition.
local function move_on(epoch)
  if type(redis.pcall('INCR', epoch)) == 'table' then
    redis.call('SET', epoch, '1')
  end
end
