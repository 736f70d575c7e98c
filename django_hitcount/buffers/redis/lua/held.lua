-- What a partition holds beside the tables. A part of other scripts.

-- Whether no claim and no settle has come since somebody read ``epoch``.
local function is_still(key, epoch)
  return (text_in(key) or '0') == epoch
end

-- The hits of a field; none if they are malformed, which a flush will find out.
local function held_in(hash, field)
  local hits = redis.pcall('HGET', hash, field)
  return type(hits) == 'string' and tonumber(hits) or 0
end
