"""Requests of one sequence stay on one instance: the model server keeps their state between them.

Decides which sequence a request belongs to: the header ``amphitrite-sequence`` says so, or the parameter
``sequence_id`` of Triton's JSON, or of its message in gRPC, which any client of Triton sends. Must not know which
routes need it (see ``enabled``); only they pay for it, since the body is held until the instance is chosen.
"""

from __future__ import annotations

import json
from typing import Any

from amphitrite.dataplane.envoy.filters import sequence_messages

#: The header that names a request's sequence, and by whose hash an instance is chosen.
SEQUENCE = "amphitrite-sequence"

#: What is held of a body at most, until its sequence is known; a larger one is answered 413.
HELD_BYTES = 16 * 1024 * 1024

_FILTER = "amphitrite.sequences"
_TYPE = "type.googleapis.com/envoy.extensions.filters.http.lua.v3"


#: Stands for the size of the body in the text of a refusal.
_SIZE = "@SIZE@"


def _body(code: str, what: str) -> str:
    message = f"this deployment serves sequences, and {what}: name the sequence in the header {SEQUENCE}"
    return json.dumps({"error": {"code": code, "message": message}})


_COMPRESSED = _body("UnsupportedMediaType", "a compressed body does not show which one it belongs to")
_LARGE = _body(
    "RequestTooLarge",
    f"a body of more than {HELD_BYTES} bytes (this one has {_SIZE}) is not searched for the one it belongs to",
)
#: With the binary extension the JSON is the first part of the body, as long as a header says. ``sequence_id`` 0 or ""
#: is what clients send for none. Headers that were taken before the body is there are not to be used afterwards.
#: A message of gRPC says for itself whether it is compressed. What is refused there gets its words from ``grpc``.
_FIND = f"""{sequence_messages.LUA}
local function find_in_message(handle)
  local body = handle:body()
  if body == nil or body:length() < 5 then return end
  if string.byte(body:getBytes(0, 1)) ~= 0 then
    handle:respond({{[":status"] = "415"}}, "")
    return
  end
  local id = sequence_of(body)
  if id == nil or id == "" or id == "0" then return end
  handle:headers():add("{SEQUENCE}", (string.gsub(id, "[^%w_%.:@/+=%-]", "_")))
end

function envoy_on_request(handle)
  local headers = handle:headers()
  if headers:get("{SEQUENCE}") ~= nil then return end
  local kind = headers:get("content-type") or ""
  if kind == "application/grpc" or string.find(kind, "application/grpc+", 1, true) == 1 then
    return find_in_message(handle)
  end
  local encoding = headers:get("content-encoding")
  if encoding ~= nil and encoding ~= "identity" then
    handle:respond({{[":status"] = "415", ["content-type"] = "application/json"}}, '{_COMPRESSED}')
    return
  end
  local size = tonumber(headers:get("content-length") or "0") or 0
  if size > {HELD_BYTES} then
    local told = string.gsub('{_LARGE}', "{_SIZE}", string.format("%d", size))
    handle:respond({{[":status"] = "413", ["content-type"] = "application/json"}}, told)
    return
  end
  local announced = headers:get("inference-header-content-length")
  local body = handle:body()
  if body == nil then return end
  local length = announced ~= nil and tonumber(announced) or body:length()
  local text = body:getBytes(0, math.min(math.max(length, 0), body:length()))
  local id = string.match(text, '"sequence_id"%s*:%s*"?([%w_%.:@/+=%-]+)')
  if id ~= nil and id ~= "0" then handle:headers():add("{SEQUENCE}", string.sub(id, 1, 256)) end
end
"""


def http_filter() -> dict[str, Any]:
    """The filter for the connection manager, off unless a route asks for it."""
    source = {"inline_string": _FIND}
    return {
        "name": _FILTER,
        "disabled": True,
        "typed_config": {"@type": f"{_TYPE}.Lua", "default_source_code": source},
    }


def enabled() -> dict[str, Any]:
    """Per-filter configuration of a route that turns the filter on: of one for whole requests, not for streams."""
    return _here({"filter_context": {}})


def waiting() -> dict[str, Any]:
    """Per-filter configuration under which the filter is there and does nothing (see ``tokens``)."""
    return _here({"disabled": True})


def hash_policy() -> list[dict[str, Any]]:
    """Of a route: by the sequence; a request of none goes anywhere."""
    return [{"header": {"header_name": SEQUENCE}}]


def _here(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        _FILTER: {
            "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig",
            "config": {"@type": f"{_TYPE}.LuaPerRoute", **settings},
        }
    }
