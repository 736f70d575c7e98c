-- What to do when a sketch begins. scripts.py puts this file before finish_record.lua.

-- Forget the names of sketches that have expired, when an object gets another one.
local function forget_expired(sketches_of)
  -- If the reply is an error, the loop has no items.
  for _, name in ipairs(redis.pcall('SMEMBERS', sketches_of)) do
    if redis.call('EXISTS', name) == 0 then
      redis.call('SREM', sketches_of, name)
    end
  end
end

-- Add the sketch to the kept numbers of the object: see sketches.lua. If it is there already, Redis
-- has lost it, and the table must be read again.
local function note_beginning(epoch, sketches_of, sketch)
  local kept = string.gsub(epoch, 'epoch$', 'kept_visitors:')
    .. string.match(sketches_of, '}:sketches_of:(.*)$')
  if redis.call('EXISTS', kept) == 1 and redis.pcall('HSETNX', kept, sketch, '') ~= 1 then
    redis.call('DEL', kept)
  end
end
