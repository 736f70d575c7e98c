-- Read running totals of a partition, and of those that Redis does not have, the hits that it holds.
--
-- KEYS: batch, pending, epoch, runs; then the totals.
-- ARGV: a number to begin the epoch with, if there is none; then, for each total, the content type
-- and name of its counter (as in 5:views), and its object id.
-- Returns: the epoch and the runs; the totals, nil where there is none; then what held_of says of
-- the batch, and of the pending hits, about the others.

local AT_A_TIME = 1000 -- Lua cannot pass more than some thousand arguments.

local totals, missing = {}, {}
for i = 5, #KEYS, AT_A_TIME do
  for _, total in ipairs(redis.call('MGET', unpack(KEYS, i, math.min(i + AT_A_TIME - 1, #KEYS)))) do
    local at = #totals + 1
    totals[at] = number_in(total)
    if not totals[at] then
      missing[#missing + 1] = ARGV[2 * at]
      missing[#missing + 1] = ARGV[2 * at + 1]
    end
  end
end
return {
  epoch_in(KEYS[3], ARGV[1]), text_in(KEYS[4]), totals,
  held_of(KEYS[1], missing), held_of(KEYS[2], missing),
}
