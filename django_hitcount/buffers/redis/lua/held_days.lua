-- Read the hits of some days that a partition holds.
--
-- KEYS: pending, batch, runs.
-- ARGV: the counter; the first and the last day; a content type id, or '' for all; then object ids,
-- or none for all objects.
-- Returns: the name of the batch that is set aside, the name of the one that the pending hits
-- become, and the runs; then days and hits in turn, of the pending hits, and of the batch.

local PENDING, BATCH, RUNS = unpack(KEYS)
local counter, first_day, last_day, content_type_id = unpack(ARGV, 1, 4)
local FIRST_OBJECT = 5

local function held_by_day(hash)
  local found = {}
  for model_day in days_in(hash) do
    local of, name, day = string.match(model_day, '^(%d+):([^:]+):(.*)$')
    if name == counter and first_day <= day and day <= last_day
      and (content_type_id == '' or content_type_id == of) then
      local hits = #ARGV < FIRST_OBJECT and held_in(hash, 'm:' .. model_day) or 0
      for i = FIRST_OBJECT, #ARGV do
        hits = hits + held_in(hash, 'd:' .. model_day .. ':' .. ARGV[i])
      end
      found[#found + 1] = day
      found[#found + 1] = string.format('%.0f', hits)
    end
  end
  return found
end

return {
  (name_in(BATCH, 'id')) or false, (name_in(PENDING, 'id')) or false, text_in(RUNS),
  held_by_day(PENDING), held_by_day(BATCH),
}
