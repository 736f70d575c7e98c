-- Take hits of one partition in, once however often the command is sent.
--
-- KEYS: pending, pending_daily, malformed, epoch, batch_id, recorder, then a total per hit
-- ARGV: sequence, seconds to remember it, pending counters that call for an early flush
-- ('0': none do), then per hit: field, daily field, amount
-- Returns: 1 if this call brought pending over that number and 0 if not, a total or nil per
-- hit, and, if one is nil, epoch and batch id.

local function set_aside(hash, field)
  if redis.call('TYPE', hash).ok ~= 'hash' then
    redis.call('DEL', hash)
  else
    local place = field .. '#' .. redis.call('HLEN', KEYS[3])
    redis.call('HSET', KEYS[3], place, redis.call('HGET', hash, field))
    redis.call('HDEL', hash, field)
  end
end

-- A script is not rolled back: nothing in it may fail once a hit is written. What is in the
-- way of hits is not of our making.
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

local last = redis.call('SET', KEYS[6], ARGV[1], 'EX', ARGV[2], 'GET')
local is_new = not last or tonumber(last) < tonumber(ARGV[1])
if not is_new then
  redis.call('SET', KEYS[6], last, 'EX', ARGV[2])
end
local threshold = tonumber(ARGV[3])
local added = 0
local all_known = true
local replies = {0}

for i = 7, #KEYS do
  local at = 3 * (i - 6) + 1
  local total = known_total(KEYS[i])
  if is_new then
    if threshold > 0 and redis.call('HEXISTS', KEYS[1], ARGV[at]) == 0 then
      added = added + 1
    end
    add(KEYS[1], ARGV[at], ARGV[at + 2])
    add(KEYS[2], ARGV[at + 1], ARGV[at + 2])
    if total then
      total = redis.call('INCRBY', KEYS[i], ARGV[at + 2])
    end
  end
  all_known = all_known and total
  replies[i - 5] = total
end

if added > 0 then
  local size = redis.call('HLEN', KEYS[1])
  if size > threshold and size - added <= threshold then
    replies[1] = 1
  end
end
if not all_known then
  replies[#KEYS - 4] = redis.call('GET', KEYS[4])
  replies[#KEYS - 3] = redis.call('GET', KEYS[5])
end
return replies
