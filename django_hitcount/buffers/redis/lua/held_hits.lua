-- Functions about totals, epochs and hits that are not in the tables. Somebody else may have written
-- to any key, a value of any type. scripts.py puts this file before all scripts.

-- The text of a key, or false.
local function text_in(key)
  local text = redis.pcall('GET', key)
  return type(text) == 'string' and text
end

-- The name of a key of the current run, then those of the same key of earlier runs that may have hits.
local function in_all_runs(runs, key)
  local names, prefix = {key}, string.sub(runs, 1, -5) -- Without 'runs'.
  local current, rest = string.match(string.sub(key, #prefix + 1), '^(%w+)(.*)$')
  for run in string.gmatch(text_in(runs) or '', '%w+') do
    if run ~= current then
      names[#names + 1] = prefix .. run .. rest
    end
  end
  return names
end

-- A text if it is a whole number that we may have written, or false.
local function number_in(text)
  return type(text) == 'string' and #text <= 20 and string.match(text, '^-?%d+$') or false
end

-- The epoch of a partition. If there is none, it is the number ``first``, which is used only once:
-- no reader knows an epoch from before it was deleted, or from before Redis lost its memory. A full
-- or read-only Redis keeps none.
local function epoch_in(key, first)
  local epoch = text_in(key)
  if not epoch then
    epoch = first
    redis.pcall('SET', key, first)
  end
  return epoch
end

-- The hits of a field; 0 if they are malformed, which the next flush reports.
local function held_in(hash, field)
  return tonumber(number_in(redis.pcall('HGET', hash, field)) or 0)
end

-- The days of which a hash has hits, by model: a list of content type, counter and day, such as
-- 5:views:2026-03-10.
local function days_in(hash)
  local days = redis.pcall('HGET', hash, 'days')
  return string.gmatch(type(days) == 'string' and days or '', '%d+:[^:%s]+:%d%d%d%d%-%d%d%-%d%d')
end

-- The name of the batch that the hits of a hash are or become (false: none); then, of counters that
-- have hits, the place in ``counters``, a day, and the hits on it. ``counters`` has for each the
-- content type and name, as in 5:views, or the name for all models; then a colon and the object id,
-- or '' for all objects. Without days, or with '', of all days.
local function held_of(hash, counters, first_day, last_day)
  local found, days = {(name_in(hash, 'id')) or false}, {}
  for model_day in days_in(hash) do
    local of_model, name, day = string.match(model_day, '^(%d+:([^:]+)):(.*)$')
    if (first_day or '') <= day and (day <= (last_day or '') or (last_day or '') == '') then
      for _, counter in ipairs({of_model, name}) do
        days[counter] = days[counter] or {}
        table.insert(days[counter], model_day)
      end
    end
  end
  for i = 1, #counters, 2 do
    local object = counters[i + 1]
    for _, model_day in ipairs(days[counters[i]] or {}) do
      local hits = held_in(hash, (object == '' and 'm:' or 'd:') .. model_day .. object)
      if hits ~= 0 then
        found[#found + 1] = (i + 1) / 2
        found[#found + 1] = string.sub(model_day, -10)
        found[#found + 1] = string.format('%.0f', hits)
      end
    end
  end
  return found
end

-- What held_of says of the pending hits of the current run, and then of all others, and of batches.
local function held_in_runs(runs, pending, batch, ...)
  local found = {}
  for _, key in ipairs({pending, batch}) do
    for _, hash in ipairs(in_all_runs(runs, key)) do
      found[#found + 1] = held_of(hash, ...)
    end
  end
  return found
end
