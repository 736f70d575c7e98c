-- Functions that find hits that are not in the tables. scripts.py puts this file, after
-- foreign_values.lua, before the scripts that call them.

-- Whether no batch was claimed or settled since the caller read the epoch.
local function is_still(key, epoch)
  return (text_in(key) or '0') == epoch
end

-- The hits of a field; 0 if they are malformed, which the next flush reports.
local function held_in(hash, field)
  local hits = redis.pcall('HGET', hash, field)
  return type(hits) == 'string' and tonumber(hits) or 0
end

-- The days of which a hash has hits, by model: a list of content type, counter and day, such as
-- 5:views:2026-03-10.
local function days_in(hash)
  local days = redis.pcall('HGET', hash, 'days')
  return string.gmatch(type(days) == 'string' and days or '', '%d+:[^:%s]+:%d%d%d%d%-%d%d%-%d%d')
end
