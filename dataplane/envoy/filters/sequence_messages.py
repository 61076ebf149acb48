"""Which sequence a gRPC message belongs to: Lua code for ``sequence_affinity``.

Decides where the parameter ``sequence_id`` is in Triton's ``ModelInferRequest``
(``grpc_service.proto`` of Triton's protocol), and how much of a message is looked at. A message is
read field by field, and tensors are skipped. Envoy's worker does nothing else meanwhile, so the
number of fields is bounded. Must not know what is done with the sequence.
"""

from __future__ import annotations

#: The most fields of one message that are looked at, those of its parameters included. A message
#: has one for each input, output, tensor and parameter; a longer one is refused.
FIELDS_MAX = 1024
#: What is copied out of the body at once. A jump beyond it costs a copy, a step within it does not.
_WINDOW = 4096

#: ``sequence_in_fields(source, first, till)`` reads fields, wherever bytes come from. ``source``
#: has ``byte(at)``, ``text(at, length)``, ``fields`` (how many have been read), ``longest`` (the
#: most bytes of an id that is a text, or nil) and ``wrong``: why no more are read. Numbers are
#: floating-point here: an id above 2^53 shares its hash with a few neighbours, which does no harm.
#: Protobuf itself reads 32 bits of a key. It also takes groups, which nobody sends.
FIELDS = f"""
local MANY, UNREADABLE, LONG = "many", "unreadable", "long"

local function varint(source, at, till)
  local value, factor = 0, 1
  for _ = 1, 10 do
    if at >= till then break end
    local byte = source.byte(at)
    at = at + 1
    value = value + (byte % 128) * factor
    if byte < 128 then return value, at end
    factor = factor * 128
  end
  source.wrong = UNREADABLE
  return nil, till
end

-- Calls visit(number, first, length) for each field with a length, and visit(number, value) for each
-- integer.
local function fields(source, at, till, visit)
  while at < till and source.wrong == nil do
    source.fields = source.fields + 1
    if source.fields > {FIELDS_MAX} then
      source.wrong = MANY
      return
    end
    local key, value
    key, at = varint(source, at, till)
    if key == nil then return end
    key = key % 4294967296
    local kind, number = key % 8, math.floor(key / 8)
    if kind == 0 then
      value, at = varint(source, at, till)
      if value ~= nil then visit(number, value) end
    elseif kind == 1 then
      at = at + 8
    elseif kind == 5 then
      at = at + 4
    elseif kind == 2 then
      value, at = varint(source, at, till)
      if value == nil then return end
      if value <= till - at then visit(number, at, value) end
      at = at + value
    else
      source.wrong = UNREADABLE
    end
  end
  if at > till then source.wrong = source.wrong or UNREADABLE end
end

-- map<string, InferParameter> parameters = 4; int64_param = 2, string_param = 3, uint64_param = 5.
-- Of two values protobuf takes the last one. Returns the id as text, or nil.
local function sequence_in_fields(source, first, till)
  local found = nil
  fields(source, first, till, function(number, at, length)
    if number ~= 4 or length == nil then return end
    local named, id, long = false, nil, 0
    fields(source, at, at + length, function(part, begin, size)
      if size == nil then return end
      if part == 1 then
        named = named or (size == 11 and source.text(begin, size) == "sequence_id")
      elseif part == 2 then
        fields(source, begin, begin + size, function(kind, value, bytes)
          if kind == 3 and bytes ~= nil then
            long = math.max(long, bytes)
            id = bytes == 0 and "" or source.text(value, math.min(bytes, 256))
          elseif (kind == 2 or kind == 5) and bytes == nil then
            id = string.format("%.0f", value)
          end
        end)
      end
    end)
    if named then
      found = id
      if source.longest ~= nil and long > source.longest then source.wrong = source.wrong or LONG end
    end
  end)
  return found
end
"""

#: ``sequence_of(body, longest)``: the id as text, or nil, and what is wrong, or nil. The body is
#: one uncompressed gRPC message.
LUA = f"""{FIELDS}
local function sequence_of(body, longest)
  local size, first, window = body:length(), 0, ""
  local source = {{fields = 0, longest = longest}}
  function source.byte(at)
    local byte = at >= first and string.byte(window, at - first + 1)
    if not byte then
      first, window = at, body:getBytes(at, math.min({_WINDOW}, size - at))
      byte = string.byte(window)
    end
    return byte
  end
  function source.text(at, length) return body:getBytes(at, length) end
  local a, b, c, d = string.byte(body:getBytes(1, 4), 1, 4)
  if ((a * 256 + b) * 256 + c) * 256 + d ~= size - 5 then return nil, UNREADABLE end
  return sequence_in_fields(source, 5, size), source.wrong
end
"""
