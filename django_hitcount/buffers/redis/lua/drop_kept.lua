-- Drop the kept numbers of visitors of some objects, so that they are read from the table again.
--
-- KEYS: the hashes of kept numbers.
-- ARGV: the beginnings of the names of kept numbers and of merged sketches.
--
-- merged_name is in kept_visitors.lua, which scripts.py puts before this script.

for i = 1, #KEYS do
  local kept = redis.pcall('HGETALL', KEYS[i])
  for j = 1, #kept, 2 do
    local counter, first, today = string.match(kept[j], '^days:([^:]*):([^:]*):(.*)$')
    local range = {
      object = string.sub(KEYS[i], #ARGV[1] + 1), merged = ARGV[2],
      counter = counter, first = first, today = today,
    }
    local key_ids = counter and string.match(kept[j + 1], '^%d+ %d+(.*)$') or ''
    for key_id in string.gmatch(key_ids, ' ([^ ]+)') do
      redis.call('DEL', merged_name(range, key_id))
    end
  end
  redis.call('DEL', KEYS[i])
end
