-- Read the hits of some days that a partition holds.
--
-- KEYS: batch_id, sequence, runs; then the hits by model and by counter of the pending hits, and
-- those of the batch.
-- ARGV: the counter; the first and the last day; a content type id, or '' for all; then object ids,
-- or none for all objects.
-- Returns: the id of the batch that is set aside, the id of the last batch, and the runs; then
-- days and hits in turn, of the pending hits, and of the batch.
--
-- text_in is in foreign_values.lua, and held_in is in held_hits.lua. scripts.py puts both files
-- before this script.

local counter, first_day, last_day, content_type_id = unpack(ARGV, 1, 4)
local FIRST_OBJECT = 5

-- Whether a field of the hits by model is wanted, and its day.
local function wanted_day(field)
  local of, name, day = string.match(field, '^(%d+):([^:]+):(%d%d%d%d%-%d%d%-%d%d)$')
  local is_wanted = name == counter and first_day <= day and day <= last_day
  return is_wanted and (content_type_id == '' or content_type_id == of) and day
end

local function held_by_day(models, daily)
  local found = {}
  local fields = redis.pcall('HKEYS', models)
  for _, field in ipairs(fields.err and {} or fields) do
    local day = wanted_day(field)
    if day then
      local hits = 0
      for i = FIRST_OBJECT, #ARGV do
        hits = hits + held_in(daily, field .. ':' .. ARGV[i])
      end
      if #ARGV < FIRST_OBJECT then
        hits = held_in(models, field)
      end
      found[#found + 1] = day
      found[#found + 1] = string.format('%.0f', hits)
    end
  end
  return found
end

return {
  text_in(KEYS[1]), text_in(KEYS[2]), text_in(KEYS[3]),
  held_by_day(KEYS[4], KEYS[5]), held_by_day(KEYS[6], KEYS[7]),
}
