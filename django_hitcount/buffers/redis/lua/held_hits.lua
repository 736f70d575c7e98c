-- Functions that find hits that are not in the tables. scripts.py puts this file, after
-- foreign_values.lua and batch_names.lua, before the scripts that call them.

-- Whether no batch was claimed or settled since the caller read the epoch.
local function is_still(key, epoch)
  return (text_in(key) or '0') == epoch
end

-- The hits of a field; 0 if they are malformed, which the next flush reports.
local function held_in(hash, field)
  local hits = redis.pcall('HGET', hash, field)
  return tonumber(number_in(hits) or 0)
end

-- The days of which a hash has hits, by model: a list of content type, counter and day, such as
-- 5:views:2026-03-10.
local function days_in(hash)
  local days = redis.pcall('HGET', hash, 'days')
  return string.gmatch(type(days) == 'string' and days or '', '%d+:[^:%s]+:%d%d%d%d%-%d%d%-%d%d')
end

-- The name of the batch that the hits of a hash are or become (false: none), and its hits of
-- counters. ``counters`` has for each its content type and name, as in 5:views, and its object id.
local function held_of(hash, counters)
  local AT_A_TIME = 1000 -- Lua cannot pass more than some thousand arguments.
  local _, _, name = name_in(hash, 'id')
  local found, fields = {name or false}, {}
  for model_day in days_in(hash) do
    local counter = string.match(model_day, '^[^:]*:[^:]*')
    fields[counter] = fields[counter] or {}
    table.insert(fields[counter], 'd:' .. model_day .. ':')
  end
  for i = 1, #counters, 2 do
    local hits, days = 0, fields[counters[i]] or {}
    for first = 1, #days, AT_A_TIME do
      local names = {}
      for at = first, math.min(first + AT_A_TIME - 1, #days) do
        names[#names + 1] = days[at] .. counters[i + 1]
      end
      for _, value in ipairs(redis.call('HMGET', hash, unpack(names))) do
        hits = hits + tonumber(number_in(value) or 0)
      end
    end
    found[#found + 1] = string.format('%.0f', hits)
  end
  return found
end
