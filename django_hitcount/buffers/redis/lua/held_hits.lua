-- What a partition holds beside the tables. A part of other scripts.

-- Whether there was no claim and no settle since the caller read ``epoch``.
local function is_still(key, epoch)
  return (text_in(key) or '0') == epoch
end

-- The hits of a field; none if they are malformed, which a flush will report.
local function held_in(hash, field)
  local hits = redis.pcall('HGET', hash, field)
  return type(hits) == 'string' and tonumber(hits) or 0
end
