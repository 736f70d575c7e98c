-- Turn slot sums into totals, by adding what the partition holds, and keep them.
--
-- KEYS: epoch, the hashes whose hits the tables did not have when the sums were read, then a
-- total per counter
-- ARGV: epoch before the sums were read, how many hashes there are, seconds to keep the totals
-- ('0': do not keep them), then per counter: field, slot sum
-- Returns: a total per counter; nil if the partition was claimed or settled since.

if not is_still(KEYS[1], ARGV[1]) then
  return false
end
local hashes = tonumber(ARGV[2])
local totals = {}
for i = hashes + 2, #KEYS do
  local at = 2 * (i - hashes)
  -- Another process may have loaded it meanwhile.
  local total = text_in(KEYS[i])
  if not total or not string.match(total, '^-?%d+$') then
    total = tonumber(ARGV[at + 1])
    for hash = 2, hashes + 1 do
      total = total + held_in(KEYS[hash], ARGV[at])
    end
    total = string.format('%.0f', total)
    if ARGV[3] ~= '0' then
      redis.call('SET', KEYS[i], total, 'EX', ARGV[3])
    end
  end
  totals[i - hashes - 1] = total
end
return totals
