"""The ids of sequences in a stream of gRPC messages: Lua code for ``sequence_affinity``.

Decides where a stream has an id that its models cannot take. A stream cannot be held, so it is
read as it passes. When such an id comes, the message that has it is spoilt and nothing behind it
passes: Triton refuses the message and ends the stream. Must not know which ids those are, nor which
routes have them.
"""

from __future__ import annotations

#: ``check_stream(handle, longest)``: returns when the stream ends. It spoils a message with a
#: longer id that is a text, and one that cannot be read. Needs what ``sequence_messages`` defines.
#: Messages are read by a coroutine, which waits in the middle of one until more bytes come.
LUA = """
local function read_messages(source)
  local at = 0
  while true do
    source.message, source.till = at, at
    local compressed, a, b, c, d = source.byte(at), source.byte(at + 1), source.byte(at + 2), source.byte(at + 3),
      source.byte(at + 4)
    if compressed ~= 0 then return end
    source.till, source.fields = at + 5 + ((a * 256 + b) * 256 + c) * 256 + d, 0
    sequence_in_fields(source, at + 5, source.till)
    if source.wrong ~= nil then return end
    at = source.till
  end
end

local function check_stream(handle, longest)
  local source = {first = 0, bytes = "", longest = longest}
  function source.byte(at)
    while at >= source.first + #source.bytes do
      source.first = source.first + #source.bytes
      source.bytes = coroutine.yield()
    end
    return string.byte(source.bytes, at - source.first + 1)
  end
  function source.text(at, length)
    local bytes = {}
    for i = 1, length do bytes[i] = string.char(source.byte(at + i - 1)) end
    return table.concat(bytes)
  end
  local reader, first = coroutine.create(read_messages), 0
  coroutine.resume(reader, source)
  for chunk in handle:bodyChunks() do
    local size = chunk:length()
    if size > 0 then
      if coroutine.status(reader) == "suspended" then coroutine.resume(reader, chunk:getBytes(0, size)) end
      if coroutine.status(reader) == "dead" then
        -- The length of the message stays, so that it ends where the model server expects its end.
        local before = math.min(size, math.max(0, math.min(source.message + 5, source.till) - first))
        local spoilt = math.max(0, math.min(size, source.till - first) - before)
        chunk:setBytes((before > 0 and chunk:getBytes(0, before) or "") .. string.rep("\\255", spoilt))
      end
      first = first + size
    end
  end
end
"""
