-- Keep totals that were read, with the hits that came since.
--
-- KEYS: epoch, pending; then the total of each counter.
-- ARGV: the epoch when the totals were read; how many seconds to keep them; then, for each counter,
-- its content type and name (as in 5:views), its object id, and its total without pending hits.
-- Keeps none if the epoch has changed since.

if text_in(KEYS[1]) ~= ARGV[1] then
  return
end
local counters = {}
for i = 3, #ARGV, 3 do
  counters[#counters + 1] = ARGV[i]
  counters[#counters + 1] = ARGV[i + 1]
end
local held = held_of(KEYS[2], counters)
for i = 3, #KEYS do
  -- Another process may have kept the total since.
  if not number_in(text_in(KEYS[i])) then
    local total = string.format('%.0f', tonumber(ARGV[3 * i - 4]) + tonumber(held[i - 1]))
    redis.call('SET', KEYS[i], total, 'EX', ARGV[2])
  end
end
