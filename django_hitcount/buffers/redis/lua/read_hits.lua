-- Read the hits that a partition holds of counters, and the totals of those that have one.
--
-- KEYS: batch, pending, runs; then, to read totals, the epoch and the total of each counter.
-- ARGV: a number to begin the epoch with, if there is none; the first and the last day, or '' and ''
-- for all; then, for each counter, what held_of takes.
-- Returns: the epoch; the totals, nil where there is none; what held_in_runs says about the counters
-- without a total.

local AT_A_TIME = 1000 -- Lua cannot pass more than some thousand arguments.
local NO_COUNTERS = 3

local epoch, totals, missing = false, {}, {}
if #KEYS > 3 then
  epoch = epoch_in(KEYS[4], ARGV[1])
end
for i = 5, #KEYS, AT_A_TIME do
  for _, total in ipairs(redis.call('MGET', unpack(KEYS, i, math.min(i + AT_A_TIME - 1, #KEYS)))) do
    totals[#totals + 1] = number_in(total)
  end
end
for i = 1, (#ARGV - NO_COUNTERS) / 2 do
  if not totals[i] then
    missing[#missing + 1] = ARGV[NO_COUNTERS + 2 * i - 1]
    missing[#missing + 1] = ARGV[NO_COUNTERS + 2 * i]
  end
end
return {
  epoch, totals,
  #missing > 0 and held_in_runs(KEYS[3], KEYS[2], KEYS[1], missing, ARGV[2], ARGV[3]) or {},
}
