-- Drop what is wrong since the tables changed.
--
-- KEYS: epoch; then running totals and hashes of kept numbers.

for _, key in ipairs(KEYS) do -- One by one: Lua passes no more than some thousand arguments.
  redis.call('DEL', key)
end
