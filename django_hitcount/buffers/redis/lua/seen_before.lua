-- Find out whether a filter has an entry, and add it if not. scripts.py puts this file before
-- record.lua.
--
-- A filter is one string, so that no part of it can be evicted or expire alone: how many entries are
-- in it (32 bits), what identifies its geometry (32 bits), then the layers of a scalable Bloom filter,
-- each twice as large as the one before it. bloom.py has the formulas.
--
-- One GETBIT for each bit is faster than one BITFIELD for all: most layers do not have the entry,
-- and the first or second bit usually shows that.

local function seen_before(filter, geometry, ttl_seconds, entry)
  local call = redis.call
  local first, bits, more_bits, hashes, more_hashes = struct.unpack('>I4I4I4dd', geometry)
  local a, b, c = struct.unpack('>I6I5I5', entry) -- Below 2^53: Lua calculates with them exactly.

  local header = redis.pcall('GETRANGE', filter, 0, 7)
  local size, made_for = 0, nil
  if type(header) == 'string' and #header == 8 then
    size, made_for = struct.unpack('>I4I4', header)
  end
  if header ~= '' and made_for ~= bits then
    call('DEL', filter) -- We did not write it, or a setting has changed since.
    size = 0
  end

  -- Layers 0 .. n - 1 have room for first * (2^n - 1) entries. Layer n starts after them.
  local _, layers = math.frexp(math.floor((size - 1) / first) + 1)
  local function start_of(layer)
    return 64 + bits * (2 ^ layer - 1) + more_bits * ((layer - 2) * 2 ^ layer + 2)
  end

  -- Read bits 2 .. k of the entry in a layer, until one is 0, or set all of them.
  --
  -- Triple hashing, see docs/internals.rst. With a step of 0, the same bit would come again, so y is
  -- never 0.
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
    if call('GETBIT', filter, past + a % length) == 1 and has_rest(layer, past, length) then
      return true
    end
  end

  if size == first * (2 ^ layers - 1) then
    layers = layers + 1
    -- Write the last bit first, so that Redis allocates memory only once.
    if type(redis.pcall('SETBIT', filter, start_of(layers) - 1, 0)) == 'table' then
      return false -- Redis allows no longer string. An entry that cannot be kept counts as new.
    end
    local ttl_milliseconds = call('PTTL', filter)
    if ttl_milliseconds < 1 then
      ttl_milliseconds = ttl_seconds * 1000
    end
    -- When a string grows, Redis allocates as much again, up to 1 MB more. A copy has no such
    -- reserve, and no TTL. Do not copy long strings: that takes long, and saves little.
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
