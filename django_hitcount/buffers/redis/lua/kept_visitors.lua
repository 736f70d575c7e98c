-- Functions that count the visitors of the last days. scripts.py puts this file, after
-- foreign_values.lua, before the scripts that call them.
--
-- Each object has a hash of kept numbers. In it are, by counter,
--   'day:<counter>:<day>'             how many sketches an open day had when they were merged with
--                                     those of the table. Since then, they lack no visitor;
--   'days:<counter>:<first>:<today>'  the closed days of a range: how many visitors and spans were
--                                     counted, and the ids of the visitor keys under which the days
--                                     are merged into one sketch.
-- Days are texts like 2026-03-10, so their order is that of the texts.

-- The counter, the day and the id of the visitor key of a sketch; nothing if it is not ours.
local function parse_sketch(name, prefix)
  if string.sub(name, 1, #prefix) == prefix then
    return string.match(string.sub(name, #prefix + 1), '^%d+:([^:]*):([^:]*):([^:]+):')
  end
end

local function day_field(counter, day)
  return 'day:' .. counter .. ':' .. day
end

local function days_field(range)
  return 'days:' .. range.counter .. ':' .. range.first .. ':' .. range.today
end

-- The name of the sketch that has the closed days of a range under one visitor key.
local function merged_name(range, key_id)
  return range.merged .. range.counter .. ':' .. range.first .. ':' .. range.today .. ':' .. key_id
    .. ':' .. range.object
end

-- Find the sketches of a range. Call found(name, day, key_id) for each.
local function find_sketches(range, first_day, found)
  -- A script of Redis Cluster may use these sketches although they are not in KEYS: they are in the
  -- same partition. If the reply is an error, the loop has no items.
  for _, name in ipairs(redis.pcall('SMEMBERS', range.sketches_of)) do
    local counter, day, key_id = parse_sketch(name, range.sketches)
    if counter == range.counter and first_day <= day and day <= range.today
      and redis.call('EXISTS', name) == 1 then
      found(name, day, key_id)
    end
  end
end

-- Count the visitors of a range. Return how many there are, and the number of spans. Return nothing
-- if Redis does not know: the table must be read.
local function count_visitors_of(range)
  local first_open = range.first > range.first_open and range.first or range.first_open
  local names, on_day = {}, {}
  local function add(name, key_id)
    names[key_id] = names[key_id] or {}
    table.insert(names[key_id], name)
  end
  find_sketches(range, first_open, function(name, day, key_id)
    add(name, key_id)
    on_day[day] = (on_day[day] or 0) + 1
  end)
  local kept = redis.pcall('HMGET', range.kept, day_field(range.counter, first_open),
    day_field(range.counter, range.today), days_field(range))
  for i, day in ipairs({first_open, range.today}) do
    local merged = tonumber(kept[i] or nil)
    if not merged or (on_day[day] or 0) < merged then
      return -- The sketches were not merged with those of the table, or one of them was lost.
    end
  end
  local visitors, spans = 0, 0
  if range.first < range.first_open then
    local key_ids
    visitors, spans, key_ids = string.match(kept[3] or '', '^(%d+) (%d+)(.*)$')
    if not visitors then
      return
    end
    for key_id in string.gmatch(key_ids, ' ([^ ]+)') do
      local name = merged_name(range, key_id)
      if redis.call('EXISTS', name) == 0 then
        return
      end
      add(name, key_id)
    end
  end
  for _, of_key in pairs(names) do
    local count = redis.pcall('PFCOUNT', unpack(of_key))
    visitors, spans = visitors + (tonumber(count) or 0), spans + 1
  end
  return visitors, spans
end
