-- Deal with keys that may be of any type. A part of other scripts.
--
-- What is in the way is moved. Nothing of somebody else's is deleted, and the next claim reports what was moved.

local function text_in(key)
  local text = redis.pcall('GET', key)
  return type(text) == 'string' and text
end

-- A generation and a number, which name a batch.
local function batch_name_in(key)
  return string.match(text_in(key) or '', '^(.+):(%d+)$')
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

-- Make room for a key: whether it is there, and of type ``kind``.
local function is_there(key, kind, malformed)
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= kind then
    move_away(key, malformed)
  end
  return found == kind
end

local function move_on(epoch)
  if type(redis.pcall('INCR', epoch)) == 'table' then
    redis.call('SET', epoch, '1')
  end
end
