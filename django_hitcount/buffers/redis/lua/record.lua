-- Record hits of one partition. If the command is sent several times, record them only once.
--
-- KEYS and ARGV have the order in which record_call.py writes them: first those that all hits
-- share, then those of each hit.
-- Returns: if there is one hit, its total, and if that may not be all, also whether it counts. If
-- something is left to finish_record.lua, returns what that does: scripts.py puts that file after
-- this one, and few hits need it. Returns nil if the command is sent again, and what Redis knows of
-- its run is not what it is expected to know.
--
-- Redis serves nobody else meanwhile, so a hit makes no function or table that it does not need.
--
-- A foreign value in place of PENDING or SEQUENCE is an error before any hit is written: the hits go
-- to the tables, and the next claim moves the value away. In place of another key, it is replaced.

local call, pcall, match = redis.call, redis.pcall, string.match
local PENDING, BATCH, SEQUENCE, EPOCH, RUNS = unpack(KEYS, 1, 5)
local recorder, command_number, expected, threshold, number_of_hits, rule = unpack(ARGV, 1, 6)
local COUNTS, REPEAT, ADDRESS_LIMIT = 0, 1, 2

local last_command = tonumber(match(call('HGET', SEQUENCE, recorder) or '', '^%d+')) or 0
local is_new = last_command < tonumber(command_number)
local now, is_unlisted
local counter_sum, model_sum, total_sum
if is_new then
  if rule == 'common' then
    counter_sum = pcall('HINCRBY', PENDING, ARGV[7], ARGV[8])
  end
  if type(counter_sum) ~= 'number' then
    call('HLEN', PENDING) -- Fails here for a foreign value, before anything is written.
    if expected ~= '' and known_of(SEQUENCE, PENDING, BATCH) ~= expected then
      return false
    end
  end
  is_unlisted = call('EXISTS', RUNS) == 0 -- The list was evicted, and the hits that it leads to not.
  now = call('TIME')[1]
  -- If Redis is full, this command fails, before a hit is written.
  call('HSET', SEQUENCE, recorder, command_number .. ' ' .. now)
end

-- The common hit: the only one of its command, without a visitor, of a counter that has hits since
-- the last claim, and whose total is known. If it turns out to be another one, it is not over here.
if type(counter_sum) == 'number' then
  local amount = tonumber(ARGV[8])
  model_sum = pcall('HINCRBY', PENDING, ARGV[10], ARGV[8])
  total_sum = pcall('INCRBY', KEYS[6], ARGV[8])
  if counter_sum ~= amount and counter_sum ~= 0
    and type(model_sum) == 'number' and model_sum ~= amount and model_sum ~= 0
    and type(total_sum) == 'number' and total_sum ~= amount and not is_unlisted then
    return total_sum
  end
end

-- Add to the number in a field, unless that is done, and return the sum. Fields do not stay at 0. A
-- value that is no number gets a name that no field of ours has, so the flush finds it malformed.
local has_new_field = false
local function add(field, amount, sum)
  sum = sum or pcall('HINCRBY', PENDING, field, amount)
  if type(sum) == 'table' then
    local place = '?' .. call('HLEN', PENDING) .. field
    call('HSET', PENDING, place, call('HGET', PENDING, field))
    call('HDEL', PENDING, field)
    sum = call('HINCRBY', PENDING, field, amount)
  end
  has_new_field = has_new_field or sum == tonumber(amount)
  if sum == 0 then
    call('HDEL', PENDING, field)
  end
  return sum
end

-- The rule is 'seconds', 'daily' or 'always', as in the option repeat. It is '' if the hits have no
-- visitors, and 'common' if there is one hit without a visitor, whose total may be the answer.
local keys_read, args_read, keys_of_visitor, args_of_visitor = 5, 6, 0, 0
local judge, begun
if rule ~= '' and rule ~= 'common' then
  local repeat_keys, counts_visitors, limit = tonumber(ARGV[7]), ARGV[8] == '1', tonumber(ARGV[11])
  local filter, merged_sketches = KEYS[6], rule == 'daily' and KEYS[7] or KEYS[6]
  keys_read = 5 + (rule == 'daily' and 1 or 0) + (counts_visitors and 1 or 0)
  args_read = 12
  -- Where a visitor's keys and arguments are, after those of the hit: those of the sketch, of
  -- intervals, of the address.
  local repeat_key = counts_visitors and 3 or 1
  local address_key = repeat_key + repeat_keys
  local visitor_arg = counts_visitors and 2 or 1
  local sketch_time = visitor_arg + (repeat_keys > 0 and 2 or 1)
  local address_arg = sketch_time + (counts_visitors and 1 or 0)
  keys_of_visitor = address_key - 1 + (limit > 0 and 1 or 0)
  args_of_visitor = address_arg - 1 + (limit > 0 and 2 or 0)

  -- Run a command on a key that holds no hits. If it fails, replace what somebody else wrote there.
  local function run_or_replace(name, key, ...)
    local reply = pcall(name, key, ...)
    if type(reply) == 'table' then
      call('DEL', key)
      reply = call(name, key, ...)
    end
    return reply
  end

  local function count_visitor(visitor, sketch, sketches_of, field, milliseconds)
    if run_or_replace('PFADD', sketch, visitor) == 0 then
      return
    end
    local is_begun = call('TTL', sketch) < 0
    if is_begun then
      call('PEXPIRE', sketch, milliseconds)
      begun = begun or {}
      begun[#begun + 1] = {sketch, sketches_of, milliseconds}
    end
    -- The value '1' means that the sketch may lack visitors of the table: it begins here, or this
    -- is its first change since Redis was started.
    local is_new_field = call('HSETNX', PENDING, 'v:' .. field, '0') == 1
    has_new_field = has_new_field or is_new_field
    if (is_new_field or is_begun)
      and run_or_replace('SADD', merged_sketches, field) == 1 or is_begun then
      call('PEXPIRE', merged_sketches, milliseconds)
      call('HSET', PENDING, 'v:' .. field, '1')
    end
  end

  -- Decide whether a hit counts, and remember its visitor. If the address is over its limit, nothing
  -- is kept of the visitor, who may be invented. Returns the field of refused hits if it is refused.
  function judge(key, arg)
    local visitor, addresses = ARGV[arg + visitor_arg], KEYS[key + address_key]
    local counted = limit > 0 and pcall('HGET', addresses, ARGV[arg + address_arg])
    if type(counted) == 'string' and (tonumber(counted) or 0) >= limit then
      return ADDRESS_LIMIT, ARGV[12]
    end
    local is_repeat = false
    if rule == 'daily' then
      is_repeat = seen_before(filter, ARGV[10], visitor)
    elseif repeat_keys > 0 then
      local current = key + repeat_key -- Under the current visitor key.
      for i = current + 1, current + repeat_keys - 1 do
        is_repeat = is_repeat or call('EXISTS', KEYS[i]) == 1
      end
      is_repeat = is_repeat
        or not call('SET', KEYS[current], '1', 'NX', 'PX', ARGV[arg + visitor_arg + 1])
    end
    if limit > 0 and not is_repeat
      and run_or_replace('HINCRBY', addresses, ARGV[arg + address_arg], 1) == 1
      and call('TTL', addresses) < 0 then
      call('PEXPIRE', addresses, ARGV[arg + address_arg + 1])
    end
    if counts_visitors then
      count_visitor(visitor, KEYS[key + 1], KEYS[key + 2], ARGV[arg + 1], ARGV[arg + sketch_time])
    end
    if is_repeat then
      return REPEAT, ARGV[9]
    end
    return COUNTS, ''
  end
end

-- Add to the hits of a counter on a day, and to those of its model.
local is_full = 0
local function add_hits(field, amount)
  local sum = add(field, amount, counter_sum)
  if sum == tonumber(amount) then
    local counters = add('counters', '1')
    if counters == 1 then
      call('HSET', PENDING, 'since', now)
    end
    -- FLUSH_THRESHOLD: the partition is flushed early if more counters are pending. 0: never.
    if threshold ~= '0' and counters == threshold + 1 then
      is_full = 1
    end
  elseif sum == 0 then
    add('counters', '-1')
  end
  local day = match(field, '^d:([^:]*:[^:]*:[^:]*)')
  if add('m:' .. day, amount, model_sum) == tonumber(amount) then
    local days = call('HGET', PENDING, 'days') or ''
    if not string.find(' ' .. days .. ' ', ' ' .. day .. ' ', 1, true) then
      call('HSET', PENDING, 'days', days == '' and day or days .. ' ' .. day)
    end
  end
end

local totals, verdicts, missing = {}, {}, {}
for n = 1, tonumber(number_of_hits) do
  local total_key, total = KEYS[keys_read + 1], nil
  local field, amount, refused_field = unpack(ARGV, args_read + 1, args_read + 3)
  keys_read, args_read = keys_read + 1, args_read + 3
  verdicts[n] = COUNTS
  local is_silent = refused_field == '-' -- See SILENT in record_call.py.
  if judge and is_new and (refused_field == '' or is_silent) then
    verdicts[n], refused_field = judge(keys_read, args_read)
  end
  keys_read, args_read = keys_read + keys_of_visitor, args_read + args_of_visitor
  -- An amount of 0 only remembers a visitor. A refused hit with a negative amount is not counted.
  if is_new and refused_field == '' and amount ~= '0' then
    add_hits(field, amount)
    total = total_sum or pcall('INCRBY', total_key, amount)
    -- Ours has a TTL. If it has none, it begins here, so Redis did not know it.
    if type(total) == 'table' or total == tonumber(amount) and call('TTL', total_key) < 0 then
      if pcall('GET', total_key) ~= 'paused' then -- See keeping.py.
        call('DEL', total_key)
      end
      total = false
    end
  else
    if is_new and refused_field ~= '' and not is_silent and tonumber(amount) > 0 then
      add(refused_field, amount)
    end
    total = pcall('GET', total_key)
    total = type(total) == 'string' and #total <= 20 and match(total, '^-?%d+$')
  end
  totals[n] = total or false
  if not totals[n] then
    local counter, object = match(field, '^d:([^:]*:[^:]*):[^:]*(:.*)$')
    missing[#missing + 1] = counter
    missing[#missing + 1] = object
  end
end

local is_unnamed = has_new_field and call('HEXISTS', PENDING, 'id') == 0
local is_finished = is_full == 0 and not (is_unlisted or is_unnamed or begun)
if is_finished and number_of_hits == '1' and totals[1] then
  return type(totals[1]) == 'number' and totals[1] or {totals[1], verdicts[1]}
end
