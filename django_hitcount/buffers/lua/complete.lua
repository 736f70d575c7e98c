-- Turn slot sums into totals, by adding what the partition holds, and keep them.
--
-- KEYS: epoch, pending, batch, then a total per counter
-- ARGV: epoch when the sums were read, '1' if the batch was in the ledger then, seconds to
-- keep the totals ('0': do not), then per counter: field, slot sum
-- Returns: a total per counter; nil if the partition was claimed or settled since.

if (redis.call('GET', KEYS[1]) or '0') ~= ARGV[1] then
  return false
end
local totals = {}
for i = 4, #KEYS do
  local at = 2 * (i - 2)
  -- Somebody else may have loaded it meanwhile.
  local total = redis.call('GET', KEYS[i])
  if not total then
    total = tonumber(ARGV[at + 1]) + (tonumber(redis.call('HGET', KEYS[2], ARGV[at])) or 0)
    if ARGV[2] ~= '1' then
      total = total + (tonumber(redis.call('HGET', KEYS[3], ARGV[at])) or 0)
    end
    total = string.format('%.0f', total)
    if ARGV[3] ~= '0' then
      redis.call('SET', KEYS[i], total, 'EX', ARGV[3])
    end
  end
  totals[i - 3] = total
end
return totals
