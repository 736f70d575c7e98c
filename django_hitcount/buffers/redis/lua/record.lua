-- Record hits of one partition. If the command is sent several times, record them only once.
--
-- KEYS and ARGV have the order in which record_call.py writes them: first those that all hits
-- share, then those of each hit.
-- Returns: the total of a common hit, see common_hit.lua. For others: 1 if this call brought the number of pending counters over the threshold, or 0; the
-- total of each hit, or nil; for each hit, whether it counts (COUNTS, REPEAT or ADDRESS_LIMIT);
-- and, if a total is nil, the epoch, the runs, and what held_of says of the batch and the pending
-- hits about these counters. Returns nil if the command is sent again, and what Redis knows of its
-- run is not what it is expected to know.
--
-- common_hit.lua comes first, and leaves what it has done: is_noted, counter_sum, model_sum and
-- total_sum. All functions that are not in here are in the files that scripts.py puts before it.

local PENDING, BATCH, SEQUENCE, EPOCH, RUNS, MALFORMED = unpack(KEYS, 1, 6)
local recorder, command_number, expected, threshold, number_of_hits, rule = unpack(ARGV, 1, 6)
local keys_read, args_read = 6, 6

local function next_key()
  keys_read = keys_read + 1
  return KEYS[keys_read]
end

local function next_arg()
  args_read = args_read + 1
  return ARGV[args_read]
end

local COUNTS, REPEAT, ADDRESS_LIMIT = 0, 1, 2

-- FLUSH_THRESHOLD: the partition is flushed early if more counters are pending. 0: never.
threshold = tonumber(threshold)
-- The rule is 'seconds', 'daily' or 'always', as in the option repeat. It is '' if the hits have no
-- visitors, and 'common' if there is one hit, which may be a common one. Then the call has no further
-- keys and arguments about visitors.
local has_visitors = rule ~= '' and rule ~= 'common'
local repeat_keys, counts_visitors, limit = 0, false, 0
local repeat_field, filter, filter_geometry, filter_seconds, limit_field, merged_sketches
if has_visitors then
  repeat_keys = tonumber(next_arg())
  counts_visitors = next_arg() == '1'
  repeat_field = next_arg()
  filter_geometry = next_arg()
  filter_seconds = next_arg()
  limit = tonumber(next_arg()) -- How many hits of one address count; 0: no limit.
  limit_field = next_arg()
  if rule == 'daily' then
    filter = next_key()
  end
  if counts_visitors then
    merged_sketches = next_key()
  end
end

local function read_hit()
  local total = next_key()
  local field, amount, refused_field = next_arg(), next_arg(), next_arg()
  local hit = {
    total = total, field = field, amount = amount,
    refused_field = refused_field, -- '' if no refusal has refused the hit.
  }
  if has_visitors then
    hit.visitor = next_arg()
    hit.repeat_keys = {}
    for i = 1, repeat_keys do
      hit.repeat_keys[i] = next_key() -- The first one is under the current visitor key.
    end
    if repeat_keys > 0 then
      hit.repeat_milliseconds = next_arg()
    end
    if counts_visitors then
      hit.sketch = next_key()
      hit.sketches_of = next_key()
      hit.visitors_field = next_arg()
      hit.sketch_milliseconds = next_arg()
    end
    if limit > 0 then
      hit.addresses = next_key()
      hit.address_field = next_arg()
      hit.addresses_milliseconds = next_arg()
    end
  end
  return hit
end

local known = redis.pcall('HMGET', SEQUENCE, 'last_batch', recorder)
if known.err then
  move_away(SEQUENCE, MALFORMED)
  known = {}
end
local generation, last_number = parse_name(known[1])
local last_command = tonumber(string.match(known[2] or '', '^%d+') or 0)
local is_new = is_noted or last_command < tonumber(command_number)
if is_new and expected ~= '' and known_of(generation, PENDING, BATCH) ~= expected then
  return false
end
local run = string.match(SEQUENCE, '}:([^:]*):')
if not generation then
  -- The name consists of the id of this command, so no other generation has it.
  generation, last_number = run .. ':' .. recorder .. ':' .. command_number, 0
  redis.call('HSET', SEQUENCE, 'last_batch', generation .. ':0')
end

-- Add the run to those that may have hits.
local function list_run()
  local runs = text_in(RUNS) or ''
  if not string.find(' ' .. runs .. ' ', ' ' .. run .. ' ', 1, true) then
    redis.call('SET', RUNS, runs == '' and run or runs .. ' ' .. run)
  end
end

if is_new and not is_noted then
  local today = math.floor(redis.call('TIME')[1] / 86400)
  redis.call('HSET', SEQUENCE, recorder, command_number .. ' ' .. today)
  if redis.call('EXISTS', RUNS) == 0 then
    list_run() -- The list was evicted, and the hits that it leads to were not.
  end
end

-- Name the batch that the pending hits become, when they get a new field: then they may have no
-- name yet. So each state that Redis may go back to has the name, and a claim finds the same one.
local function name_pending()
  local number = string.format('%.0f', last_number + 1)
  if redis.call('HSETNX', PENDING, 'id', generation .. ':' .. number) == 1 then
    list_run()
  end
end

-- Add to the number in a field, unless the caller has done so, and return the sum. A new field has
-- the sum ``amount``: fields do not stay at 0.
local function add(field, amount, sum)
  sum = sum or redis.pcall('HINCRBY', PENDING, field, amount)
  if type(sum) == 'table' then
    move_field_away(PENDING, field, MALFORMED)
    sum = redis.call('HINCRBY', PENDING, field, amount)
  end
  if sum == tonumber(amount) then
    name_pending()
  elseif sum == 0 then
    redis.call('HDEL', PENDING, field)
  end
  return sum
end

local is_full = 0

-- Add to the hits of a counter on a day, and to those of its model.
local function add_hits(field, amount)
  local sum = add(field, amount, counter_sum)
  if sum == tonumber(amount) then
    local counters = add('counters', 1)
    if counters == 1 then
      redis.call('HSET', PENDING, 'since', redis.call('TIME')[1])
    end
    is_full = threshold > 0 and counters == threshold + 1 and 1 or is_full
  elseif sum == 0 then
    add('counters', -1)
  end
  local model_day = string.match(field, '^d:([^:]*:[^:]*:[^:]*)')
  if add('m:' .. model_day, amount, model_sum) == tonumber(amount) then
    local days = redis.call('HGET', PENDING, 'days') or ''
    if not string.find(' ' .. days .. ' ', ' ' .. model_day .. ' ', 1, true) then
      redis.call('HSET', PENDING, 'days', days == '' and model_day or days .. ' ' .. model_day)
    end
  end
end

-- Make the function that decides whether a hit counts, or is refused because of its visitor or
-- address. It returns the verdict, and the field of the refused hits if the hit is refused. If the
-- address is over its limit, nothing is kept of the visitor, who may be invented.
--
-- To make a function takes time. So these are made only if the hits have visitors.
local function make_decision()
  -- Run a command. If it fails, a foreign value has the name that we need: move it, and try again.
  -- Redis does not roll a script back, so no command may fail after a hit was written.
  local function attempt(in_the_way, ...)
    local reply = redis.pcall(...)
    if type(reply) == 'table' and reply.err then
      move_away(in_the_way, MALFORMED)
      return redis.call(...)
    end
    return reply
  end

  -- Whether the visitor was counted already. If not, remember the visitor.
  local function is_repeat(hit)
    if rule == 'daily' then
      return seen_before(filter, filter_geometry, filter_seconds, hit.visitor)
    elseif rule == 'always' or repeat_keys == 0 then
      return false
    end
    for i = 2, repeat_keys do
      if redis.call('EXISTS', hit.repeat_keys[i]) == 1 then
        return true
      end
    end
    return not redis.call('SET', hit.repeat_keys[1], '1', 'NX', 'PX', hit.repeat_milliseconds)
  end

  -- Whether the address of the hit has reached its limit.
  local function is_at_limit(hit)
    local counted = redis.pcall('HGET', hit.addresses, hit.address_field)
    return type(counted) == 'string' and (tonumber(counted) or 0) >= limit
  end

  local function count_address(hit)
    local addresses = hit.addresses
    local counted = attempt(addresses, 'HINCRBY', addresses, hit.address_field, 1)
    if counted == 1 and redis.call('TTL', addresses) < 0 then
      redis.call('PEXPIRE', addresses, hit.addresses_milliseconds)
    end
  end

  -- Add the visitor to the sketch. A sketch that begins here has no TTL yet. Its name is added to
  -- those of the object, so that both can be deleted together. The value '1' in PENDING means that
  -- the sketch may lack visitors of the table: it begins here, or this is its first change since
  -- Redis was started.
  local function count_visitor(hit)
    local sketch, sketches_of, milliseconds = hit.sketch, hit.sketches_of, hit.sketch_milliseconds
    if attempt(sketch, 'PFADD', sketch, hit.visitor) == 0 then
      return
    end
    local is_begun = redis.call('TTL', sketch) < 0
    if is_begun then
      redis.call('PEXPIRE', sketch, milliseconds)
      forget_expired(sketches_of)
      attempt(sketches_of, 'SADD', sketches_of, sketch)
      redis.call('PEXPIRE', sketches_of, milliseconds)
      note_beginning(EPOCH, sketches_of, hit.visitors_field)
    end
    local field = 'v:' .. hit.visitors_field
    local is_new_field
    if attempt(merged_sketches, 'SADD', merged_sketches, hit.visitors_field) == 1 or is_begun then
      redis.call('PEXPIRE', merged_sketches, milliseconds)
      is_new_field = attempt(PENDING, 'HSET', PENDING, field, '1')
    else
      is_new_field = attempt(PENDING, 'HSETNX', PENDING, field, '0')
    end
    if is_new_field == 1 then
      name_pending()
    end
  end

  return function(hit)
    if limit > 0 and is_at_limit(hit) then
      return ADDRESS_LIMIT, limit_field
    end
    local verdict, refused_field = COUNTS, ''
    if is_repeat(hit) then
      verdict, refused_field = REPEAT, repeat_field
    elseif limit > 0 then
      count_address(hit)
    end
    if counts_visitors then
      count_visitor(hit)
    end
    return verdict, refused_field
  end
end

local decide = has_visitors and make_decision()
local totals, verdicts, missing = {}, {}, {}

for n = 1, tonumber(number_of_hits) do
  local hit = read_hit()
  local total
  local verdict, refused_field = COUNTS, hit.refused_field
  if is_new and refused_field == '' and decide then
    verdict, refused_field = decide(hit)
  end
  -- An amount of 0 only remembers a visitor. A refused hit with a negative amount is not counted.
  if is_new and refused_field == '' and hit.amount ~= '0' then
    add_hits(hit.field, hit.amount)
    total = raise_total(hit.total, hit.amount, total_sum)
  else
    if is_new and refused_field ~= '' and tonumber(hit.amount) > 0 then
      add(refused_field, hit.amount)
    end
    total = known_total(hit.total)
  end
  totals[n], verdicts[n] = total, verdict
  if not total then
    local counter, object_id = string.match(hit.field, '^d:([^:]*:[^:]*):[^:]*:(.*)$')
    missing[#missing + 1] = counter
    missing[#missing + 1] = object_id
  end
end

local unknown = false
if #missing > 0 then
  local name = redis.sha1hex(recorder .. ':' .. command_number)
  local first = string.format('%.0f', tonumber(string.sub(name, 1, 12), 16))
  unknown = {
    epoch_in(EPOCH, first), text_in(RUNS), held_of(BATCH, missing), held_of(PENDING, missing),
  }
end
return {is_full, totals, verdicts, unknown}
