-- Add visitors to a filter.
--
-- KEYS: filter
-- ARGV: seconds to keep a filter that is new, then the visitors
-- Returns: how many of the visitors were seen before.

local count = 0
for i = 2, #ARGV do
  if seen_before(KEYS[1], ARGV[1], ARGV[i]) then
    count = count + 1
  end
end
return count
