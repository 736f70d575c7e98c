-- Count the visitors of ranges of days.
--
-- KEYS: epoch; then, for each range, sketches_of and the hash of kept numbers of its object.
-- ARGV: a number with which an epoch may begin; then the ranges, each with the range of its open
-- days, or '' if it is not kept.
-- Returns: the epoch; then, for each range, what count_kept returns. If that is 0, the visitors
-- field and the count of each sketch follow.

local reply = {epoch_in(KEYS[1], ARGV[1])}
for i = 2, #KEYS, 2 do
  local range, open_days = ARGV[i], ARGV[i + 1]
  local found = open_days == '' and {0} or count_kept(KEYS[i + 1], range, open_days)
  if found[1] == 0 then
    -- A script of Redis Cluster may use these sketches although they are not in KEYS: they are in
    -- the same partition.
    for _, name in ipairs(find_sketches(redis.pcall('SMEMBERS', KEYS[i]), range)) do
      local count = redis.pcall('PFCOUNT', name)
      if type(count) == 'number' and count > 0 then
        found[#found + 1] = string.match(name, '}:visitors:(.*)$')
        found[#found + 1] = count
      end
    end
  end
  reply[#reply + 1] = found
end
return reply
