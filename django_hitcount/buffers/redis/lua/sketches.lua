-- Functions about sketches. scripts.py puts this file before all scripts but record.
--
-- A range is a text: '<counter>:<first day>:<last day>'. Days are texts like 2026-03-10, so their
-- order is that of the texts.
--
-- Each object has a hash of kept numbers. Some fields are ranges that end today, and have the
-- visitors and the spans of the closed days. The other fields are the names of sketches: all those of
-- the open days of these ranges. They lack no visitor of the table.

-- Return those names that are names of sketches of a range, and the ids of their visitor keys. These
-- begin with a letter.
local function find_sketches(names, range)
  local found, key_ids = {}, {}
  local counter, first_day, last_day = string.match(range, '^(.*):(.*):(.*)$')
  for _, name in ipairs(names) do -- If they are an error instead, there is none.
    local of, day, key_id =
      string.match(name, '}:visitors:%d+:([^:]*):(%d+-%d+-%d+):(%a[^:]*)')
    if of == counter and first_day <= day and day <= last_day then
      found[#found + 1] = name
      key_ids[#found] = key_id
    end
  end
  return found, key_ids
end

-- Count the visitors of a range, of which ``open_days`` is a part. Returns 1, their number and that
-- of spans; 0 if the table must be read.
local function count_kept(kept, range, open_days)
  local closed = redis.pcall('HGET', kept, range)
  local visitors, spans = string.match(type(closed) == 'string' and closed or '', '^(%d+) (%d+)$')
  if not visitors then
    return {0}
  end
  local of_keys = {}
  local sketches, key_ids = find_sketches(redis.call('HKEYS', kept), open_days)
  for i, key_id in ipairs(key_ids) do
    of_keys[key_id] = of_keys[key_id] or {}
    table.insert(of_keys[key_id], sketches[i])
  end
  for _, names in pairs(of_keys) do
    local count = redis.pcall('PFCOUNT', unpack(names))
    if type(count) ~= 'number' or redis.call('EXISTS', unpack(names)) < #names then
      return {0} -- Redis has lost a sketch.
    end
    visitors, spans = visitors + count, spans + 1
  end
  return {1, tonumber(visitors), tonumber(spans)}
end

-- Add a sketch of the table to one in Redis. ``given`` is a name for a temporary key.
local function merge_given(target, given, sketch)
  if type(redis.pcall('PFCOUNT', target)) ~= 'number' then
    redis.call('DEL', target) -- We did not write it.
  end
  redis.call('SET', given, sketch, 'EX', 60)
  redis.pcall('PFMERGE', target, given)
  redis.call('DEL', given)
end
