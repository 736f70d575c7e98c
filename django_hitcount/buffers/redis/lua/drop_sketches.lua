-- Drop the sketches of an object.
--
-- KEYS: sketches_of, runs; of the current run, epoch, pending and batch.
-- ARGV: '1' to leave those with visitors that wait for a flush, or ''.

local SKETCHES_OF, RUNS, EPOCH, PENDING, BATCH = unpack(KEYS)
local PREFIX = string.gsub(RUNS, 'runs$', 'visitors:')

local function is_waiting(field)
  for _, key in ipairs({PENDING, BATCH}) do
    for _, hash in ipairs(in_all_runs(RUNS, key)) do
      if redis.pcall('HEXISTS', hash, field) == 1 then
        return true
      end
    end
  end
  return false
end

-- Who has read the table before may put its visitors into a sketch, but not in the next epoch.
redis.call('DEL', EPOCH)
-- If it is not a set, the reply is an error, and the loop has no items.
for _, name in ipairs(redis.pcall('SMEMBERS', SKETCHES_OF)) do
  -- We did not write names that begin differently.
  if string.sub(name, 1, #PREFIX) == PREFIX
    and not (ARGV[1] == '1' and is_waiting('v:' .. string.sub(name, #PREFIX + 1))) then
    redis.call('DEL', name)
    redis.call('SREM', SKETCHES_OF, name)
  end
end
