-- Keep totals that were read, with the hits that came since.
--
-- KEYS: epoch, pending; then the total of each counter.
-- ARGV: the epoch when the totals were read; how many seconds to keep them; then, for each counter,
-- what held_of takes, and its total without pending hits.
-- Keeps none if the epoch has changed since, and none that is paused.

if text_in(KEYS[1]) ~= ARGV[1] then
  return
end
local counters, totals = {}, {}
for i = 3, #ARGV, 3 do
  counters[#counters + 1] = ARGV[i]
  counters[#counters + 1] = ARGV[i + 1]
  totals[#totals + 1] = tonumber(ARGV[i + 2])
end
local held = held_of(KEYS[2], counters)
for i = 2, #held, 3 do
  totals[held[i]] = totals[held[i]] + tonumber(held[i + 2])
end
for i, total in ipairs(totals) do
  -- Another process may have kept the total since, or is about to change the tables: keeping.py.
  local kept = text_in(KEYS[2 + i])
  if not number_in(kept) and kept ~= 'paused' then
    redis.call('SET', KEYS[2 + i], string.format('%.0f', total), 'EX', ARGV[2])
  end
end
