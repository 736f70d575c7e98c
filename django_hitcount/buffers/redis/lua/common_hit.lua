-- Record the common hit: the first one in its command, of a counter that has hits since the last
-- claim, and whose total is known. scripts.py puts this file before all that record.lua needs. If
-- the hit is a common one, all that follows is neither made nor run.
--
-- Where the hit turns out to be another one, record.lua goes on: it does not repeat what was done.
--
-- KEYS and ARGV are those of record.lua. The rule is 'common', and the model's field comes last.
-- Returns: the total.

local is_noted, counter_sum, model_sum, total_sum = false, nil, nil, nil
if ARGV[6] == 'common' then
  local call, amount = redis.call, tonumber(ARGV[8])
  local last = redis.pcall('HGET', KEYS[3], ARGV[1])
  local last_command = type(last) == 'string' and tonumber(string.match(last, '^%d+'))
  if last_command and last_command < tonumber(ARGV[2]) and call('EXISTS', KEYS[5]) == 1 then
    is_noted = true
    -- As the first one that writes, this command is the one that a full Redis rejects.
    local today = math.floor(call('TIME')[1] / 86400)
    call('HSET', KEYS[3], ARGV[1], ARGV[2] .. ' ' .. today)
    counter_sum = redis.pcall('HINCRBY', KEYS[1], ARGV[7], ARGV[8])
    if type(counter_sum) == 'number' and counter_sum ~= amount and counter_sum ~= 0 then
      model_sum = redis.pcall('HINCRBY', KEYS[1], ARGV[10], ARGV[8])
      if type(model_sum) == 'number' and model_sum ~= amount and model_sum ~= 0 then
        total_sum = redis.pcall('INCRBY', KEYS[7], ARGV[8])
        if type(total_sum) == 'number' and total_sum ~= amount then
          return total_sum
        end
      end
    end
  end
end
