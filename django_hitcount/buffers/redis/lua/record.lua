-- Record hits of one partition. If the command is sent several times, record them only once.
--
-- KEYS and ARGV have the order in which record_call.py writes them: first those that all hits
-- share, then those of each hit.
-- Returns: the total, if there is one hit, which counts and asks for nothing of finish_record.lua.
-- Otherwise what finish_record.lua says. Returns nil if the command is sent again, and what Redis
-- knows of its run is not what it is expected to know.
--
-- Redis serves nobody else meanwhile, so a hit has only the commands that it needs: no function is
-- made for what it does not ask for. What few hits ask for is noted here, and done in
-- finish_record.lua, which scripts.py puts after this file.
--
-- A foreign value in place of PENDING or SEQUENCE is an error before any hit is written: the hits go
-- to the tables, and the next claim moves the value away. In place of a key that holds no hits, it
-- is replaced.

local call, pcall, match = redis.call, redis.pcall, string.match
local PENDING, SEQUENCE, EPOCH, RUNS = KEYS[1], KEYS[3], KEYS[4], KEYS[5]
local recorder, command_number, expected, number_of_hits, rule = ARGV[1], ARGV[2], ARGV[3], ARGV[5], ARGV[6]
local keys_read, args_read = 6, 6
local COUNTS, REPEAT, ADDRESS_LIMIT = 0, 1, 2

local last_command = tonumber(match(call('HGET', SEQUENCE, recorder) or '', '^%d+')) or 0
local is_new = last_command < tonumber(command_number)
local is_unlisted = false -- Whether the list of runs was evicted, and the hits that it leads to were not.
if is_new then
  if expected ~= '' and known_of(SEQUENCE, PENDING, KEYS[2]) ~= expected then
    return false
  elseif rule ~= 'common' then
    call('HLEN', PENDING)
  end
  is_unlisted = call('EXISTS', RUNS) == 0
  -- As the first one that writes, this command is the one that a full Redis rejects.
  call('HSET', SEQUENCE, recorder, command_number .. ' ' .. call('TIME')[1])
end

-- The common hit: the only one of its command, without a visitor, of a counter that has hits since the
-- last claim, and whose total is known. What is found to be unusual is done below.
local counter_sum, model_sum, total_sum
if is_new and rule == 'common' then
  local amount = tonumber(ARGV[8])
  counter_sum = pcall('HINCRBY', PENDING, ARGV[7], ARGV[8])
  if type(counter_sum) == 'number' then
    model_sum = pcall('HINCRBY', PENDING, ARGV[10], ARGV[8])
    total_sum = pcall('INCRBY', KEYS[7], ARGV[8])
    if counter_sum ~= amount and counter_sum ~= 0
      and type(model_sum) == 'number' and model_sum ~= amount and model_sum ~= 0
      and type(total_sum) == 'number' and total_sum ~= amount and not is_unlisted then
      return total_sum
    end
  end
end

local has_new_field = false

-- Add to the number in a field, unless that is done, and return the sum. Fields do not stay at 0. If
-- the value is no number, it gets a name under which the flush finds it malformed.
local function add(field, amount, sum)
  sum = sum or pcall('HINCRBY', PENDING, field, amount)
  if type(sum) == 'table' then
    local place = '?' .. call('HLEN', PENDING) .. field
    call('HSET', PENDING, place, call('HGET', PENDING, field))
    call('HDEL', PENDING, field)
    sum = call('HINCRBY', PENDING, field, amount)
  end
  if sum == 0 then
    call('HDEL', PENDING, field)
  elseif sum == amount then
    has_new_field = true
  end
  return sum
end

-- The rule is 'seconds', 'daily' or 'always', as in the option repeat. It is '' if the hits have no
-- visitors, and 'common' if there is one hit, without a visitor, that may be answered by its total.
local has_visitors = rule ~= '' and rule ~= 'common'
local repeat_field, limit_field, judge, begun
local keys_of_visitor, args_of_visitor = 0, 0
if has_visitors then
  local repeat_keys, counts_visitors = tonumber(ARGV[7]), ARGV[8] == '1'
  local geometry, filter_seconds, limit = ARGV[10], ARGV[11], tonumber(ARGV[12])
  repeat_field, limit_field = ARGV[9], ARGV[13]
  args_read = 13
  local filter, merged_sketches
  if rule == 'daily' then
    keys_read = keys_read + 1
    filter = KEYS[keys_read]
  end
  if counts_visitors then
    keys_read = keys_read + 1
    merged_sketches = KEYS[keys_read]
  end
  -- Where keys and arguments of a visitor are: those of intervals, of the sketch, of the address.
  local sketch_key, sketch_arg = repeat_keys + 1, repeat_keys > 0 and 3 or 2
  local address_key = counts_visitors and sketch_key + 2 or sketch_key
  local address_arg = counts_visitors and sketch_arg + 2 or sketch_arg
  keys_of_visitor = limit > 0 and address_key or address_key - 1
  args_of_visitor = limit > 0 and address_arg + 1 or address_arg - 1

  -- Run a command on a key that holds no hits. If it fails, replace what somebody else wrote there.
  local function run(name, key, ...)
    local reply = pcall(name, key, ...)
    if type(reply) == 'table' then
      call('DEL', key)
      reply = call(name, key, ...)
    end
    return reply
  end

  -- Decide whether a hit counts, and remember its visitor. If the address is over its limit, nothing
  -- is kept of the visitor, who may be invented.
  function judge(key, arg)
    local visitor = ARGV[arg + 1]
    local addresses, address = KEYS[key + address_key], ARGV[arg + address_arg]
    if limit > 0 then
      local counted = pcall('HGET', addresses, address)
      if type(counted) == 'string' and (tonumber(counted) or 0) >= limit then
        return ADDRESS_LIMIT
      end
    end
    local is_repeat = false
    if rule == 'daily' then
      is_repeat = seen_before(filter, geometry, filter_seconds, visitor)
    elseif repeat_keys > 0 then
      for i = 2, repeat_keys do -- The first one is under the current visitor key.
        is_repeat = is_repeat or call('EXISTS', KEYS[key + i]) == 1
      end
      is_repeat = is_repeat or not call('SET', KEYS[key + 1], '1', 'NX', 'PX', ARGV[arg + 2])
    end
    if limit > 0 and not is_repeat then
      if run('HINCRBY', addresses, address, 1) == 1 and call('TTL', addresses) < 0 then
        call('PEXPIRE', addresses, ARGV[arg + address_arg + 1])
      end
    end
    if counts_visitors and run('PFADD', KEYS[key + sketch_key], visitor) == 1 then
      local sketch, field = KEYS[key + sketch_key], ARGV[arg + sketch_arg]
      local milliseconds = ARGV[arg + sketch_arg + 1]
      local is_begun = call('TTL', sketch) < 0
      if is_begun then
        begun = begun or {}
        begun[#begun + 1] = {sketch, KEYS[key + sketch_key + 1], field, milliseconds}
      end
      -- The value '1' means that the sketch may lack visitors of the table: it begins here, or this
      -- is its first change since Redis was started.
      local is_noted = call('HSETNX', PENDING, 'v:' .. field, '0') == 0
      if is_begun or not is_noted then
        has_new_field = has_new_field or not is_noted
        if run('SADD', merged_sketches, field) == 1 or is_begun then
          call('PEXPIRE', merged_sketches, milliseconds)
          call('HSET', PENDING, 'v:' .. field, '1')
        end
      end
    end
    return is_repeat and REPEAT or COUNTS
  end
end

local is_full = 0
local totals, verdicts, missing, is_unnamed = {}, {}, {}, false

for n = 1, tonumber(number_of_hits) do
  local total_key = KEYS[keys_read + 1]
  local field, refused_field = ARGV[args_read + 1], ARGV[args_read + 3]
  local amount = tonumber(ARGV[args_read + 2])
  keys_read, args_read = keys_read + 1, args_read + 3
  local verdict, total = COUNTS, nil
  if has_visitors then
    if is_new and refused_field == '' then
      verdict = judge(keys_read, args_read)
      if verdict ~= COUNTS then
        refused_field = verdict == REPEAT and repeat_field or limit_field
      end
    end
    keys_read, args_read = keys_read + keys_of_visitor, args_read + args_of_visitor
  end
  -- An amount of 0 only remembers a visitor. A refused hit with a negative amount is not counted.
  if is_new and refused_field == '' and amount ~= 0 then
    local sum = add(field, amount, counter_sum)
    if sum == amount then
      local counters = add('counters', 1)
      if counters == 1 then
        call('HSET', PENDING, 'since', call('TIME')[1])
      end
      -- FLUSH_THRESHOLD: the partition is flushed early if more counters are pending. 0: never.
      if ARGV[4] ~= '0' and counters == ARGV[4] + 1 then
        is_full = 1
      end
    elseif sum == 0 then
      add('counters', -1)
    end
    local of_model = rule == 'common' and ARGV[10] or 'm' .. match(field, '^d(:[^:]*:[^:]*:[^:]*)')
    if add(of_model, amount, model_sum) == amount then
      local days, day = call('HGET', PENDING, 'days') or '', string.sub(of_model, 3)
      if not string.find(' ' .. days .. ' ', ' ' .. day .. ' ', 1, true) then
        call('HSET', PENDING, 'days', days == '' and day or days .. ' ' .. day)
      end
    end
    -- Ours has a TTL. If it has none, it begins here, so Redis did not know it.
    total = total_sum or pcall('INCRBY', total_key, amount)
    if type(total) ~= 'number' or total == amount and call('TTL', total_key) < 0 then
      call('DEL', total_key)
      total = false
    end
  else
    if is_new and refused_field ~= '' and amount > 0 then
      add(refused_field, amount)
    end
    total = pcall('GET', total_key)
    if total and not (type(total) == 'string' and match(total, '^-?%d+$') and #total <= 20) then
      call('DEL', total_key)
      total = false
    end
  end
  is_unnamed = is_unnamed or has_new_field and call('HEXISTS', PENDING, 'id') == 0
  if number_of_hits == '1' and type(total) == 'number'
    and not (is_unlisted or is_unnamed or begun) and is_full == 0 then
    return total
  end
  totals[n], verdicts[n] = total, verdict
  if not total then
    local counter, object_id = match(field, '^d:([^:]*:[^:]*):[^:]*:(.*)$')
    missing[#missing + 1] = counter
    missing[#missing + 1] = object_id
  end
end
