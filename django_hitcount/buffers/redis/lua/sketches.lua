-- Functions about sketches. scripts.py puts this file before the scripts that call them.
--
-- A range is a text: '<counter>:<first day>:<last day>'. Days are texts like 2026-03-10, so their
-- order is that of the texts.
--
-- Each object has a hash of kept numbers. Some fields are ranges that end today, and have the
-- visitors and the spans of the closed days. The other fields are about sketches, as in
-- '<counter>:<day>:<key id>': all those of the open days of these ranges. They lack no visitor of
-- the table.

-- Call found(text, key_id) for those texts that are about sketches of a range. The id of a visitor
-- key begins with a letter.
local function find_sketches(texts, range, found)
  local counter, first_day, last_day = string.match(range, '^(.*):(.*):(.*)$')
  for _, text in ipairs(texts) do -- If they are an error instead, this does nothing.
    local of, day, key_id = string.match(text, '([^:]*):(%d+-%d+-%d+):(%a[^:]*)')
    if of == counter and first_day <= day and day <= last_day then
      found(text, key_id)
    end
  end
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
  local start, model, object_id = string.match(kept, '^(.-}:).-:kept_visitors:(%d+:)(.*)$')
  find_sketches(redis.call('HKEYS', kept), open_days, function(text, key_id)
    of_keys[key_id] = of_keys[key_id] or {}
    table.insert(of_keys[key_id], start .. 'visitors:' .. model .. text .. ':' .. object_id)
  end)
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
