-- Take hits of one partition in, once however often the command is sent.
--
-- KEYS: pending, pending_daily, pending_refused, pending_visitors, malformed, epoch, batch_id,
-- sequence, runs, merged_sketches, recorder, then per hit: total, as many repeat keys as ARGV[5]
-- says (that of now first), if visitors are counted: sketch, sketches_of, and, if addresses are
-- limited: addresses; in the end, for the rule 'daily': seen
-- ARGV: sequence, seconds to remember it, pending counters that call for an early flush
-- ('0': none do), rule ('seconds', 'daily', 'always', or '' if nothing is known of a visitor);
-- unless that is '': repeat keys per hit, '1' if visitors are counted, field of pending_refused
-- for repeats, geometry of the filter of the rule 'daily', seconds to keep it, hits of one
-- address that count ('0': addresses are not limited), field of pending_refused for more; then
-- per hit: field, daily field, amount, field of pending_refused if the hit is refused (''),
-- unless the rule is '': visitor, if there are repeat keys: milliseconds to keep one, if
-- visitors are counted: visitors field, milliseconds to keep a sketch, and, if addresses are
-- limited: field of the address, milliseconds to keep addresses
-- Returns: 1 if this call brought pending over that number and 0 if not, the numbers of the
-- hits that were refused as repeats, those beyond the limit of their address below zero, a
-- total or nil per hit, and, if one is nil, epoch, batch id and runs.

local FIRST_KEY = 11
local MALFORMED, SEQUENCE, RUNS, MERGED, RECORDER = KEYS[5], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local rule, threshold = ARGV[4], tonumber(ARGV[3])
local has_visitor = rule ~= ''
local first_arg, args_per_hit = 4, 4
local repeat_keys, counts_visitors, limit = 0, false, 0
local sketch_arg, address_arg -- The arguments of a hit before those.
if has_visitor then
  repeat_keys, counts_visitors, limit = tonumber(ARGV[5]), ARGV[6] == '1', tonumber(ARGV[10])
  first_arg = 11
  sketch_arg = 5 + (repeat_keys > 0 and 1 or 0)
  address_arg = sketch_arg + (counts_visitors and 2 or 0)
  args_per_hit = address_arg + (limit > 0 and 2 or 0)
end
local keys_per_hit = 1 + repeat_keys + (counts_visitors and 2 or 0) + (limit > 0 and 1 or 0)
local hits = (#KEYS - FIRST_KEY - (rule == 'daily' and 1 or 0)) / keys_per_hit

local function set_aside(hash, field)
  if is_there(hash, 'hash', MALFORMED) then
    is_there(MALFORMED, 'hash', MALFORMED)
    local place = field .. '#' .. redis.call('HLEN', MALFORMED)
    redis.call('HSET', MALFORMED, place, redis.call('HGET', hash, field))
    redis.call('HDEL', hash, field)
  end
end

-- A script is not rolled back: nothing in it may fail once a hit is written. What is in the
-- way of hits is not of our making.
local function attempt(in_the_way, ...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    move_away(in_the_way, MALFORMED)
    return redis.call(...)
  end
  return reply
end

-- Name what is pending, so that it is claimed under the same id in whatever state a Redis that
-- goes back in time finds it. The name is that of this command, which no other shares.
local function begin_generation()
  keep_name_only(SEQUENCE, MALFORMED)
  local run = string.match(SEQUENCE, '}:([^:]*):')
  local recorder = string.match(RECORDER, '[^:]*$')
  redis.call('SET', SEQUENCE, run .. ':' .. recorder .. ':' .. ARGV[1] .. ':0')
  local runs = text_in(RUNS) or ''
  if not string.find(' ' .. runs .. ' ', ' ' .. run .. ' ', 1, true) then
    redis.call('SET', RUNS, runs == '' and run or runs .. ' ' .. run)
  end
end

local function add(hash, field, amount)
  if type(redis.pcall('HINCRBY', hash, field, amount)) == 'table' then
    set_aside(hash, field)
    redis.call('HINCRBY', hash, field, amount)
  end
end

local function known_total(key)
  local total = redis.pcall('GET', key)
  if total and (type(total) == 'table' or not string.match(total, '^-?%d+$')) then
    redis.call('DEL', key)
    return false
  end
  return total
end

-- A total that cannot grow is not ours either.
local function raise_total(key, amount)
  local total = redis.pcall('INCRBY', key, amount)
  if type(total) == 'table' then
    redis.call('DEL', key)
    return false
  end
  return total
end

-- Whether the visitor has been counted already; if not, that is known from now on.
local function is_repeat(key_at, visitor, milliseconds)
  if rule == 'daily' then
    return seen_before(KEYS[#KEYS], ARGV[8], ARGV[9], visitor)
  elseif rule == 'always' or repeat_keys == 0 then
    return false
  end
  for i = 2, repeat_keys do
    if redis.call('EXISTS', KEYS[key_at + i]) == 1 then
      return true
    end
  end
  return not redis.call('SET', KEYS[key_at + 1], '1', 'NX', 'PX', milliseconds)
end

local function is_at_limit(addresses, field)
  local counted = redis.pcall('HGET', addresses, field)
  return type(counted) == 'string' and (tonumber(counted) or 0) >= limit
end

local function count_address(addresses, field, milliseconds)
  if attempt(addresses, 'HINCRBY', addresses, field, 1) == 1 and redis.call('TTL', addresses) < 0 then
    redis.call('PEXPIRE', addresses, milliseconds)
  end
end

-- A sketch that is begun here has no TTL yet, and is noted with its object, so that it goes
-- when that goes. One that is begun, or met for the first time since Redis was started, may lack
-- visitors whom the table has.
local function count_visitor(key_at, visitor, field, milliseconds)
  local sketch, sketches_of = KEYS[key_at + repeat_keys + 1], KEYS[key_at + repeat_keys + 2]
  if attempt(sketch, 'PFADD', sketch, visitor) == 0 then
    return
  end
  local is_begun = redis.call('TTL', sketch) < 0
  if is_begun then
    redis.call('PEXPIRE', sketch, milliseconds)
    attempt(sketches_of, 'SADD', sketches_of, sketch)
    redis.call('PEXPIRE', sketches_of, milliseconds)
  end
  if attempt(MERGED, 'SADD', MERGED, field) == 1 or is_begun then
    redis.call('PEXPIRE', MERGED, milliseconds)
    attempt(KEYS[4], 'HSET', KEYS[4], field, '1')
  else
    attempt(KEYS[4], 'HSETNX', KEYS[4], field, '0')
  end
end

-- Whether a hit is refused for who made it, and for what; if not, that is known from now on.
-- Nothing is kept of visitors beyond the limit of their address, who may be made up.
local function judge(n, key_at, at)
  local addresses = KEYS[key_at + keys_per_hit - 1]
  if limit > 0 and is_at_limit(addresses, ARGV[at + address_arg + 1]) then
    return -n, ARGV[11]
  end
  local found, refused = nil, ''
  if is_repeat(key_at, ARGV[at + 5], ARGV[at + 6]) then
    found, refused = n, ARGV[7]
  elseif limit > 0 then
    count_address(addresses, ARGV[at + address_arg + 1], ARGV[at + address_arg + 2])
  end
  if counts_visitors then
    count_visitor(key_at, ARGV[at + 5], ARGV[at + sketch_arg + 1], ARGV[at + sketch_arg + 2])
  end
  return found, refused
end

local last = redis.call('SET', RECORDER, ARGV[1], 'EX', ARGV[2], 'GET')
local is_new = (tonumber(last or 0) or 0) < tonumber(ARGV[1])
if not is_new then
  redis.call('SET', RECORDER, last, 'EX', ARGV[2])
end
if not batch_name_in(SEQUENCE) then
  begin_generation()
end
local added = 0
local all_known = true
local judged = {}
local replies = {0, judged}

for n = 1, hits do
  local key_at = FIRST_KEY + (n - 1) * keys_per_hit + 1
  local at = first_arg + (n - 1) * args_per_hit
  local field, daily, amount, refused = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local total = known_total(KEYS[key_at])
  if is_new and refused == '' and has_visitor then
    judged[#judged + 1], refused = judge(n, key_at, at)
  end
  -- An amount of 0 tells of a visitor only, and taking hits back is refused without a count.
  if is_new and refused ~= '' then
    if tonumber(amount) > 0 then
      add(KEYS[3], refused, amount)
    end
  elseif is_new and amount ~= '0' then
    if threshold > 0 and redis.pcall('HEXISTS', KEYS[1], field) == 0 then
      added = added + 1
    end
    add(KEYS[1], field, amount)
    add(KEYS[2], daily, amount)
    if total then
      total = raise_total(KEYS[key_at], amount)
    end
  end
  all_known = all_known and total
  replies[n + 2] = total
end

if added > 0 then
  local size = redis.call('HLEN', KEYS[1])
  if size > threshold and size - added <= threshold then
    replies[1] = 1
  end
end
if not all_known then
  replies[hits + 3] = text_in(KEYS[6])
  replies[hits + 4] = text_in(KEYS[7])
  replies[hits + 5] = text_in(RUNS)
end
return replies
