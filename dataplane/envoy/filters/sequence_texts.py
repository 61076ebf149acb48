"""Which sequence a request in Triton's JSON belongs to: Lua code for ``sequence_affinity``.

Decides where the parameter ``sequence_id`` is in a text, and how much is looked at. Triton's
clients write their parameters last, behind the tensors, so the whole text is searched, piece by
piece, for the name alone. What follows it is looked at so often and so far, and no further:
Envoy's worker does nothing else meanwhile. Must not know what is done with the sequence.
"""

from __future__ import annotations

#: How often a text may have the name. Triton takes the first one.
NAMES_MAX = 100
_PIECE = 64 * 1024
#: How far behind the name its value may end.
_BEHIND = 512
#: JSON can write a letter of the name by its number. No client does so by itself.
_ESCAPED = ("5f", "5F", "63", "64", "65", "69", "6e", "6E", "71", "73", "75")

#: ``sequence_in_text(body, size, longest)``: the id, or nil, and what is wrong, or nil.
#: ``longest``: the most bytes of an id that is a text. With it, every name is looked at, also where
#: a letter of it is escaped; without it (nil), the search ends with the first id.
LUA = f"""
local escaped = {{{", ".join(f'"{code}"' for code in _ESCAPED)}}}

local function hides_letters(piece)
  if string.find(piece, "\\\\u00", 1, true) == nil then return false end
  for _, code in ipairs(escaped) do
    if string.find(piece, "\\\\u00" .. code, 1, true) ~= nil then return true end
  end
  return false
end

local function sequence_in_text(body, size, longest)
  local id, names = nil, 0
  for at = 0, size - 1, {_PIECE} do
    local piece = body:getBytes(at, math.min({_PIECE + _BEHIND}, size - at))
    if longest ~= nil and hides_letters(piece) then return id, "escaped" end
    local first, last = string.find(piece, '"sequence_id"', 1, true)
    while first ~= nil and first <= {_PIECE} do
      names = names + 1
      if names > {NAMES_MAX} then return id, "many" end
      local behind = string.sub(piece, last + 1, last + {_BEHIND - 16})
      local value = string.match(behind, "^%s*:%s*(.*)")
      if #behind == {_BEHIND - 16} and (value == "" or string.find(behind, "^%s*$") ~= nil) then
        return id, "unreadable"
      end
      if value ~= nil then
        id = id or string.match(value, '^"?([%w_%.:@/+=%-]+)')
        local text = longest ~= nil and string.match(value, '^"([^"]*)')
        if text and (#text > longest or (#behind == {_BEHIND - 16} and #text + 1 == #value)) then
          return id, "long"
        end
      end
      if id ~= nil and longest == nil then return id end
      first, last = string.find(piece, '"sequence_id"', last, true)
    end
  end
  return id
end
"""
