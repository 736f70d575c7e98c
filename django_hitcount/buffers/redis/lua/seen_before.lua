-- Find out whether a filter holds an entry, and add it if not. A part of other scripts.
--
-- A filter is one string: how many entries are in it (32 bits), what identifies its geometry (32
-- bits), then the layers of a scalable Bloom filter (Almeida, Baquero, Preguica & Hutchison
-- 2007, "Scalable Bloom Filters"), each twice as large as the one before it. No second key
-- can be evicted or expire apart from it. The formulas are in bloom.py.
--
-- One GETBIT for each bit is faster than one BITFIELD for all: most layers do not hold the entry,
-- and the first or second bit usually shows that.

local function seen_before(filter, geometry, ttl_seconds, entry)
  local call = redis.call
  local first, bits, more_bits, hashes, more_hashes = struct.unpack('>I4I4I4dd', geometry)
  -- Below 2^53, up to where Lua's numbers and their remainders are exact.
  local a, b, c = struct.unpack('>I6I5I5', entry)

  local header = redis.pcall('GETRANGE', filter, 0, 7)
  local size, made_for = 0, nil
  if type(header) == 'string' and #header == 8 then
    size, made_for = struct.unpack('>I4I4', header)
  end
  if header ~= '' and made_for ~= bits then
    -- We did not write it, or a setting has changed since.
    call('DEL', filter)
    size = 0
  end

  -- Layers 0 .. n - 1 hold first * (2^n - 1) entries; layer n starts behind them.
  local _, layers = math.frexp(math.floor((size - 1) / first) + 1)
  local function start_of(layer)
    return 64 + bits * (2 ^ layer - 1) + more_bits * ((layer - 2) * 2 ^ layer + 2)
  end

  -- Read bits 2 .. k of the entry in a layer, up to one that is 0, or set them.
  --
  -- Triple hashing (Dillinger & Manolios 2004, "Bloom Filters in Probabilistic Verification"):
  -- as good as independent hashes. Double hashing (Kirsch & Mitzenmacher 2006, "Less Hashing,
  -- Same Performance") is not, in a layer as small as the first: entries that share two
  -- remainders share all bits, about one new entry in a million. A step of 0 would meet a bit
  -- again, so y stays clear of it.
  local function has_rest(layer, start, length, is_to_have)
    local x, y, z = a % length, 1 + b % (length - 1), 1 + c % (length - 1)
    for _ = 2, math.ceil(hashes + more_hashes * layer) do
      x = x + y
      if x >= length then
        x = x - length
      end
      y = y + z
      if y >= length then
        y = y - length + 1
      end
      if is_to_have then
        call('SETBIT', filter, start + x, 1)
      elseif call('GETBIT', filter, start + x) == 0 then
        return false
      end
    end
    return true
  end

  local past = start_of(layers)
  for layer = layers - 1, 0, -1 do
    local length = 2 ^ layer * (bits + more_bits * layer)
    past = past - length
    -- Most layers are done with at the first bit: worth it to look at it here.
    if call('GETBIT', filter, past + a % length) == 1 and has_rest(layer, past, length) then
      return true
    end
  end

  if size == first * (2 ^ layers - 1) then
    layers = layers + 1
    -- The last bit first: Redis allocates once.
    if type(redis.pcall('SETBIT', filter, start_of(layers) - 1, 0)) == 'table' then
      return false -- No string may be that long. What cannot be kept counts as new.
    end
    local ttl_milliseconds = call('PTTL', filter)
    if ttl_milliseconds < 1 then
      ttl_milliseconds = ttl_seconds * 1000
    end
    -- A string that grew has a reserve: as long as itself, but no longer than 1 MB. A copy has
    -- none, and no TTL. Where the reserve is little, copying takes too long.
    if start_of(layers) < 2 ^ 27 then
      call('BITOP', 'OR', filter, filter)
    end
    call('PEXPIRE', filter, ttl_milliseconds)
  end
  local start = start_of(layers - 1)
  local length = start_of(layers) - start
  call('SETBIT', filter, start + a % length, 1)
  has_rest(layers - 1, start, length, true)
  call('SETRANGE', filter, 0, struct.pack('>I4I4', size + 1, bits))
  return false
end
