-- Merge what the table has of a range of days with what Redis has, keep it, and count the visitors.
--
-- The sketches of open days get the visitors of the table. So a Redis that lost them has them again.
-- Closed days are merged into one sketch for each visitor key, or added up as a number.
--
-- KEYS: epoch; sketches_of and the hash of kept numbers of the object; a name for a temporary key.
-- ARGV: the epoch before the table was read; how many seconds to keep the numbers, and sketches;
-- the beginnings of the names of sketches, of kept numbers and of merged sketches; the first open
-- day; today; the counter and the first day of the range; '1' if later days may have the same
-- visitor key as closed ones; then, for each row of the table, the visitors field, the number and
-- the sketch ('' if it was not read).
-- Returns: the number of visitors and of spans; nil if the partition was claimed or settled since.
--
-- is_still is in held_hits.lua, and the functions about ranges are in kept_visitors.lua. scripts.py
-- puts these files before this script.

local EPOCH, SKETCHES_OF, KEPT, GIVEN = unpack(KEYS)
local seconds, sketch_seconds = ARGV[2], ARGV[3]
local range = {
  sketches_of = SKETCHES_OF, kept = KEPT, object = string.sub(KEPT, #ARGV[5] + 1),
  sketches = ARGV[4], merged = ARGV[6], first_open = ARGV[7], today = ARGV[8],
  counter = ARGV[9], first = ARGV[10],
}
local may_continue = ARGV[11] == '1'
if not is_still(EPOCH, ARGV[1]) then
  return false
end

-- Add a sketch of the table to a sketch in Redis. If somebody else wrote a value there, drop it.
local function merge_given(target, sketch)
  if type(redis.pcall('PFCOUNT', target)) ~= 'number' then
    redis.call('DEL', target)
  end
  redis.call('SET', GIVEN, sketch, 'EX', 60)
  redis.pcall('PFMERGE', target, GIVEN)
end

-- A full Redis runs a script to the end if it first frees memory.
redis.call('DEL', GIVEN)
for key, command in pairs({[SKETCHES_OF] = 'SCARD', [KEPT] = 'HLEN'}) do
  if type(redis.pcall(command, key)) ~= 'number' then
    redis.call('DEL', key) -- We did not write it.
  end
end

-- By visitor key, the closed days; and how many sketches each open day has.
local closed, is_open, on_day = {}, {}, {}
local days = {}
for i = 12, #ARGV, 3 do
  local name = range.sketches .. ARGV[i]
  local _, day, key_id = parse_sketch(name, range.sketches)
  if day >= range.first_open then
    if ARGV[i + 2] ~= '' then
      merge_given(name, ARGV[i + 2])
      if redis.call('TTL', name) < 0 then
        redis.call('EXPIRE', name, sketch_seconds)
      end
      redis.call('SADD', SKETCHES_OF, name)
      if redis.call('TTL', SKETCHES_OF) < tonumber(sketch_seconds) then
        redis.call('EXPIRE', SKETCHES_OF, sketch_seconds)
      end
    end
  else
    closed[key_id] = closed[key_id] or {}
    days[name] = {visitors = tonumber(ARGV[i + 1]), sketch = ARGV[i + 2]}
    table.insert(closed[key_id], days[name])
  end
end
find_sketches(range, range.first, function(name, day, key_id)
  if day >= range.first_open then
    on_day[day], is_open[key_id] = (on_day[day] or 0) + 1, true
  else
    if not days[name] then
      days[name] = {visitors = 0, sketch = ''}
      closed[key_id] = closed[key_id] or {}
      table.insert(closed[key_id], days[name])
    end
    days[name].live = name
  end
end)

local first_open = range.first > range.first_open and range.first or range.first_open
for _, day in ipairs({first_open, range.today}) do
  redis.call('HSET', KEPT, day_field(range.counter, day), on_day[day] or 0)
end

local visitors, spans, key_ids = 0, 0, ''
for key_id, of_key in pairs(closed) do
  local is_merged = may_continue or is_open[key_id] or #of_key > 1
  local target = merged_name(range, key_id)
  redis.call('DEL', target)
  for _, day in ipairs(of_key) do
    if is_merged and (day.live or day.sketch ~= '') then
      if day.live then
        redis.pcall('PFMERGE', target, day.live)
      end
      if day.sketch ~= '' then
        merge_given(target, day.sketch)
      end
    else
      local count = day.live and redis.pcall('PFCOUNT', day.live)
      visitors = visitors + math.max(tonumber(count) or 0, day.visitors)
      spans = spans + 1
    end
  end
  if redis.call('EXISTS', target) == 1 then
    redis.call('EXPIRE', target, seconds)
    key_ids = key_ids .. ' ' .. key_id
  end
end
if range.first < range.first_open then
  redis.call('HSET', KEPT, days_field(range), visitors .. ' ' .. spans .. key_ids)
end
redis.call('EXPIRE', KEPT, seconds)
redis.call('DEL', GIVEN)
return {count_visitors_of(range)}
