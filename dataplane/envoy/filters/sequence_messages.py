"""Which sequence a gRPC message belongs to: Lua code for ``sequence_affinity``.

Decides where the parameter ``sequence_id`` is in Triton's ``ModelInferRequest``
(``grpc_service.proto`` of Triton's protocol). Must not know what is done with it. A message is
read field by field, and tensors are skipped.
"""

from __future__ import annotations

#: ``sequence_of(body)``: the id as text, or nil. The body is one uncompressed gRPC message. Numbers
#: are floating-point here: an id above 2^53 shares its hash with a few neighbours, which does no
#: harm.
LUA = """
local function varint(body, at)
  local value, factor = 0, 1
  local bytes = body:getBytes(at, math.min(10, body:length() - at))
  for i = 1, #bytes do
    local byte = string.byte(bytes, i)
    value = value + (byte % 128) * factor
    if byte < 128 then return value, at + i end
    factor = factor * 128
  end
  return nil, body:length()
end

-- Calls visit(number, first, length) for each field with a length, and visit(number, value) for each
-- integer, until one of them returns a value.
local function fields(body, at, till, visit)
  while at < till do
    local key, value
    key, at = varint(body, at)
    if key == nil then return nil end
    local kind, number, result = key % 8, math.floor(key / 8), nil
    if kind == 0 then
      value, at = varint(body, at)
      result = visit(number, value)
    elseif kind == 1 then
      at = at + 8
    elseif kind == 5 then
      at = at + 4
    elseif kind == 2 then
      value, at = varint(body, at)
      if value == nil or at + value > till then return nil end
      result = visit(number, at, value)
      at = at + value
    else
      return nil
    end
    if result ~= nil then return result end
  end
end

local function text_of(body, at, length)
  if length == 0 then return "" end
  return body:getBytes(at, math.min(length, 256))
end

-- map<string, InferParameter> parameters = 4; int64_param = 2, string_param = 3, uint64_param = 5.
local function sequence_of(body)
  return fields(body, 5, body:length(), function(number, first, length)
    if number ~= 4 or length == nil then return nil end
    local name, id
    fields(body, first, first + length, function(part, at, size)
      if part == 1 and size ~= nil then
        name = text_of(body, at, size)
      elseif part == 2 and size ~= nil then
        id = fields(body, at, at + size, function(kind, value, long)
          if kind == 3 and long ~= nil then return text_of(body, value, long) end
          if (kind == 2 or kind == 5) and long == nil and value ~= nil then return string.format("%.0f", value) end
        end)
      end
    end)
    if name == "sequence_id" then return id end
  end)
end
"""
