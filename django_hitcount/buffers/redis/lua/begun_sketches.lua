-- What to do when a sketch begins. scripts.py puts this file before the scripts that call these
-- functions.

-- Forget the names of sketches that have expired, when an object gets another one.
local function forget_expired(sketches_of)
  -- If the reply is an error, the loop has no items.
  for _, name in ipairs(redis.pcall('SMEMBERS', sketches_of)) do
    if redis.call('EXISTS', name) == 0 then
      redis.call('SREM', sketches_of, name)
    end
  end
end

-- Note in the kept numbers of the object that a sketch begins. If its day had no sketch when they
-- were merged with those of the table, this is the first, and lacks no visitor. If not, Redis has
-- lost a sketch: the table must be read again. See kept_visitors.lua.
local function note_beginning(epoch, sketches_of, field)
  local kept = string.gsub(epoch, 'epoch$', 'kept_visitors:')
    .. string.match(sketches_of, '}:sketches_of:(.*)$')
  local counter, day = string.match(field, '^%d+:([^:]*):([^:]*):')
  local day_field = 'day:' .. counter .. ':' .. day
  if redis.pcall('HGET', kept, day_field) == '0' then
    redis.call('HSET', kept, day_field, 1)
  else
    redis.pcall('HDEL', kept, day_field)
  end
end
