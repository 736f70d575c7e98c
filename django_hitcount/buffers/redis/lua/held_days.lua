-- Read the hits of some days that a partition holds.
--
-- KEYS: pending, batch, runs.
-- ARGV: the counter; the first and the last day; a content type id, or '' for all; then object ids,
-- or none for all objects.
-- Returns: the name of the batch that is set aside, the name of the one that the pending hits
-- become, and the runs; then days and hits in turn, of the pending hits, and of the batch.
--
-- text_in is in foreign_values.lua, name_in is in batch_names.lua, and held_in and days_in are in
-- held_hits.lua. scripts.py puts these files before this script.

local PENDING, BATCH, RUNS = unpack(KEYS)
local counter, first_day, last_day, content_type_id = unpack(ARGV, 1, 4)
local FIRST_OBJECT = 5

-- Whether the hits of a model on a day are wanted, and the day.
local function wanted_day(model_day)
  local of, name, day = string.match(model_day, '^(%d+):([^:]+):(.*)$')
  local is_wanted = name == counter and first_day <= day and day <= last_day
  return is_wanted and (content_type_id == '' or content_type_id == of) and day
end

local function held_by_day(hash)
  local found = {}
  for model_day in days_in(hash) do
    local day = wanted_day(model_day)
    if day then
      local hits = 0
      for i = FIRST_OBJECT, #ARGV do
        hits = hits + held_in(hash, 'd:' .. model_day .. ':' .. ARGV[i])
      end
      if #ARGV < FIRST_OBJECT then
        hits = held_in(hash, 'm:' .. model_day)
      end
      found[#found + 1] = day
      found[#found + 1] = string.format('%.0f', hits)
    end
  end
  return found
end

local function name_of(hash)
  local _, _, name = name_in(hash, 'id')
  return name or false
end

return {name_of(BATCH), name_of(PENDING), text_in(RUNS), held_by_day(PENDING), held_by_day(BATCH)}
