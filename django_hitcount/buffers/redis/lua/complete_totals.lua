-- Add the hits that a partition holds to sums of slots, and keep the totals.
--
-- KEYS: epoch; the hashes whose hits were not in the tables when the sums were read; then the total
-- of each counter.
-- ARGV: the epoch before the sums were read; the number of hashes; how many seconds to keep the
-- totals ('0': do not keep them); then, for each counter, its content type and name (as in
-- 5:views), its object id and its sum.
-- Returns: the total of each counter; nil if the partition was claimed or settled since.
--
-- text_in is in foreign_values.lua, and is_still, held_in and days_in are in held_hits.lua.
-- scripts.py puts both files before this script.

if not is_still(KEYS[1], ARGV[1]) then
  return false
end
local hashes = tonumber(ARGV[2])

-- By content type and name of the counter: the hash and the beginning of the field of each day.
local days = {}
for i = 2, hashes + 1 do
  for model_day in days_in(KEYS[i]) do
    local counter = string.match(model_day, '^[^:]*:[^:]*')
    days[counter] = days[counter] or {}
    table.insert(days[counter], {KEYS[i], 'd:' .. model_day .. ':'})
  end
end

local totals = {}
for i = hashes + 2, #KEYS do
  local at = 3 * (i - hashes) - 2
  -- Another process may have loaded the total since the caller read it.
  local total = text_in(KEYS[i])
  if not total or not string.match(total, '^-?%d+$') then
    total = tonumber(ARGV[at + 2])
    for _, place in ipairs(days[ARGV[at]] or {}) do
      total = total + held_in(place[1], place[2] .. ARGV[at + 1])
    end
    total = string.format('%.0f', total)
    if ARGV[3] ~= '0' then
      redis.call('SET', KEYS[i], total, 'EX', ARGV[3])
    end
  end
  totals[i - hashes - 1] = total
end
return totals
