-- Count the visitors of ranges of days that end today, on some objects.
--
-- KEYS: epoch; then, for each object, sketches_of and the hash of its kept numbers.
-- ARGV: the beginnings of the names of sketches, of kept numbers and of merged sketches; the first
-- open day; today; then, for each range, its counter and first day.
-- Returns: the epoch if a range is unknown, or nil; then, for each object and range, the number of
-- visitors and the number of spans; -1 and 0 if it is unknown.
--
-- text_in is in foreign_values.lua, and count_visitors_of is in kept_visitors.lua. scripts.py puts
-- both files before this script.

local reply = {false}
for i = 2, #KEYS, 2 do
  local range = {
    sketches_of = KEYS[i], kept = KEYS[i + 1], object = string.sub(KEYS[i + 1], #ARGV[2] + 1),
    sketches = ARGV[1], merged = ARGV[3], first_open = ARGV[4], today = ARGV[5],
  }
  for j = 6, #ARGV, 2 do
    range.counter, range.first = ARGV[j], ARGV[j + 1]
    local visitors, spans = count_visitors_of(range)
    if not visitors then
      reply[1], visitors, spans = text_in(KEYS[1]) or '0', -1, 0
    end
    reply[#reply + 1] = visitors
    reply[#reply + 1] = spans
  end
end
return reply
