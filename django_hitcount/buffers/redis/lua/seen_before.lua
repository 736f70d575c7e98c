-- Find out whether a filter has an entry, and add it if not. scripts.py puts this file before
-- record.lua.
--
-- A filter is one string, so that no part of it can be evicted or expire alone. It consists of
-- layers, each twice as large as the one before it. A layer consists of buckets, and a bucket of 128
-- places for marks, which are filled in order. The first bytes of an entry select a bucket of each
-- layer, and the last ones are its mark. The mark is written into the first layer whose bucket has
-- room, or into a new layer. So a new entry is taken for an earlier one only if the same mark is in
-- one of its buckets, which has a chance of 128 in 2^24 for each layer.

local FIRST_BUCKETS, BUCKET_BYTES, MARK_BYTES, NO_MARK = 8, 384, 3, '\0\0\0'

-- Where a mark begins in a bucket; nil if it is not there.
local function find_mark(bucket, mark)
  local at = string.find(bucket, mark, 1, true)
  while at and at % MARK_BYTES ~= 1 do
    at = string.find(bucket, mark, at + 1, true)
  end
  return at
end

local function seen_before(filter, seconds, entry)
  local call, pcall = redis.call, redis.pcall
  local number, mark = struct.unpack('>I6', entry), string.sub(entry, -MARK_BYTES)
  if mark == NO_MARK then
    mark = '\0\0\1'
  end

  local start, buckets, free = 0, FIRST_BUCKETS, nil
  local length = pcall('STRLEN', filter)
  while type(length) == 'number' and start < length do
    local first = start + number % buckets * BUCKET_BYTES
    local bucket = call('GETRANGE', filter, first, first + BUCKET_BYTES - 1)
    if find_mark(bucket, mark) then
      return true
    end
    local place = not free and find_mark(bucket, NO_MARK)
    free = place and first + place - 1 or free
    start, buckets = start + buckets * BUCKET_BYTES, buckets * 2
  end
  if start ~= length then
    call('DEL', filter) -- We did not write it.
    start, buckets, free = 0, FIRST_BUCKETS, nil
  end

  if not free then
    -- Write the last byte first, so that Redis allocates memory only once.
    local size = buckets * BUCKET_BYTES
    if type(pcall('SETRANGE', filter, start + size - 1, '\0')) == 'table' then
      return false -- Redis allows no longer string. An entry that cannot be kept counts as new.
    end
    free = start + number % buckets * BUCKET_BYTES
    local milliseconds = call('PTTL', filter)
    -- When a string grows, Redis allocates as much again, up to 1 MB more. A copy has no such
    -- reserve, and no TTL. Do not copy long strings: that takes long, and saves little.
    if start > 0 and start + size < 2 ^ 24 then
      call('BITOP', 'OR', filter, filter)
    end
    call('PEXPIRE', filter, milliseconds > 0 and milliseconds or seconds * 1000)
  end
  call('SETRANGE', filter, free, mark)
  return false
end
