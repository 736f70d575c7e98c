-- Drop a batch that is in the tables.
--
-- KEYS: batch_id, the epoch of the current run, malformed, the five batch hashes.
-- ARGV: the id of the batch; then the malformed fields to set aside.
-- Returns: 1, or 0 if another batch or none is set aside.
--
-- text_in, is_there and move_on are in foreign_values.lua, which scripts.py puts before this
-- script.

if text_in(KEYS[1]) ~= ARGV[1] then
  return 0
end
local malformed = {}
for i = 2, #ARGV do
  for hash = 4, #KEYS do
    local value = redis.call('HGET', KEYS[hash], ARGV[i])
    if value then
      malformed[#malformed + 1] = {ARGV[i], value}
      break
    end
  end
end
-- Free memory first. Then a full Redis runs the script to the end.
redis.call('UNLINK', KEYS[1], unpack(KEYS, 4))
is_there(KEYS[3], 'hash', KEYS[3])
for _, pair in ipairs(malformed) do
  redis.call('HSET', KEYS[3], pair[1] .. '#' .. redis.call('HLEN', KEYS[3]), pair[2])
end
move_on(KEYS[2])
return 1
