-- Take hits of one partition in, once however often the command is sent.
--
-- KEYS: pending, pending_daily, malformed, epoch, batch_id, recorder, then a total per hit
-- ARGV: sequence, seconds to remember it, pending counters that call for an early flush
-- ('0': none do), then per hit: field, daily field, amount
-- Returns: 1 if this call brought pending over that number and 0 if not, epoch, batch id,
-- then a total or nil per hit.

local function add(hash, field, amount)
  local reply = redis.pcall('HINCRBY', hash, field, amount)
  if type(reply) == 'table' and reply.err then
    -- Not a number: it must not stand in the way of the hits.
    local place = field .. '#' .. redis.call('HLEN', KEYS[3])
    redis.call('HSET', KEYS[3], place, redis.call('HGET', hash, field))
    redis.call('HSET', hash, field, amount)
  end
end

-- Whatever can fail comes before the first hit is written: a script is not rolled back.
redis.call('HLEN', KEYS[1])
redis.call('HLEN', KEYS[2])
for i = 7, #KEYS do
  local total = redis.call('GET', KEYS[i])
  if total and not string.match(total, '^-?%d+$') then
    redis.call('DEL', KEYS[i])
  end
end

local last = redis.call('GET', KEYS[6])
local is_new = not last or tonumber(last) < tonumber(ARGV[1])
local threshold = tonumber(ARGV[3])
local added = 0
local replies = {}

if is_new then
  redis.call('SET', KEYS[6], ARGV[1], 'EX', ARGV[2])
end
for i = 7, #KEYS do
  local at = 3 * (i - 6) + 1
  if is_new then
    if threshold > 0 and redis.call('HEXISTS', KEYS[1], ARGV[at]) == 0 then
      added = added + 1
    end
    add(KEYS[1], ARGV[at], ARGV[at + 2])
    add(KEYS[2], ARGV[at + 1], ARGV[at + 2])
  end
  local total = redis.call('GET', KEYS[i])
  if total and is_new then
    total = redis.call('INCRBY', KEYS[i], ARGV[at + 2])
  end
  replies[i - 3] = total
end

replies[1] = 0
if added > 0 then
  local size = redis.call('HLEN', KEYS[1])
  if size > threshold and size - added <= threshold then
    replies[1] = 1
  end
end
replies[2] = redis.call('GET', KEYS[4])
replies[3] = redis.call('GET', KEYS[5])
return replies
