"""Requests of one sequence go to one instance: the model server keeps state between them.

Decides which sequence a request belongs to: the header ``amphitrite-sequence``, or the parameter
``sequence_id`` of Triton's JSON or gRPC message, which every client of Triton sends. Must not know
which routes need it (see ``enabled``). Only those pay for it: the body is buffered until the
instance is chosen. Source: Triton's document "Sequence Extension".
"""

from __future__ import annotations

from typing import Any

from amphitrite.dataplane.envoy.filters import sequence_messages

#: The header that names a request's sequence. Its hash chooses the instance.
SEQUENCE = "amphitrite-sequence"

#: The most of a body that is buffered until its sequence is known. A larger body is answered 413.
BUFFERED_BYTES = 16 * 1024 * 1024

_FILTER = "amphitrite.sequences"
_TYPE = "type.googleapis.com/envoy.extensions.filters.http.lua.v3"


#: In the context of the routes that are searched. The filter is also there on a route without any
#: configuration of it, if the request has found one with ``inactive`` first.
_READ = "read"
#: Stands for the size of the body in the text of a refusal.
_SIZE = "@SIZE@"


#: Text alone: ``local_replies`` gives it the form of a body.
_MESSAGE = "this deployment serves sequences, and {what}: name the sequence in the header " + SEQUENCE
_COMPRESSED_BODY = _MESSAGE.format(what="a compressed body does not show its sequence")
_LARGE_BODY = _MESSAGE.format(
    what=f"a body of more than {BUFFERED_BYTES} bytes (this one has {_SIZE}) is not searched for its sequence"
)
#: With Triton's binary data extension the JSON is the first part of the body, and a header gives
#: its length. Clients send a ``sequence_id`` of 0 or "" for no sequence. Headers read before the
#: body has arrived must not be used afterwards. A gRPC message itself says whether it is
#: compressed; ``grpc_routes`` gives the text of a refusal there.
_SCRIPT = f"""{sequence_messages.LUA}
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
  if handle:filterContext():get("{_READ}") == nil then return end
  local headers = handle:headers()
  if headers:get("{SEQUENCE}") ~= nil then return end
  local kind = headers:get("content-type") or ""
  if kind == "application/grpc" or string.find(kind, "application/grpc+", 1, true) == 1 then
    return find_in_message(handle)
  end
  local encoding = headers:get("content-encoding")
  if encoding ~= nil and encoding ~= "identity" then
    handle:respond({{[":status"] = "415"}}, '{_COMPRESSED_BODY}')
    return
  end
  local size = tonumber(headers:get("content-length") or "0") or 0
  if size > {BUFFERED_BYTES} then
    local refusal = string.gsub('{_LARGE_BODY}', "{_SIZE}", string.format("%d", size))
    handle:respond({{[":status"] = "413"}}, refusal)
    return
  end
  local header_length = headers:get("inference-header-content-length")
  local body = handle:body()
  if body == nil then return end
  local length = header_length ~= nil and tonumber(header_length) or body:length()
  local text = body:getBytes(0, math.min(math.max(length, 0), body:length()))
  local id = string.match(text, '"sequence_id"%s*:%s*"?([%w_%.:@/+=%-]+)')
  if id ~= nil and id ~= "0" then handle:headers():add("{SEQUENCE}", string.sub(id, 1, 256)) end
end
"""


def http_filter() -> dict[str, Any]:
    """The filter for the connection manager. It is off unless a route turns it on."""
    source = {"inline_string": _SCRIPT}
    return {
        "name": _FILTER,
        "disabled": True,
        "typed_config": {"@type": f"{_TYPE}.Lua", "default_source_code": source},
    }


def enabled() -> dict[str, Any]:
    """Per-filter configuration of a route that turns the filter on. The route takes whole requests,
    not streams."""
    return _per_route_config({"filter_context": {_READ: True}})


def inactive() -> dict[str, Any]:
    """Per-filter configuration under which the filter is there and does nothing (see
    ``jwt.other_filters``)."""
    return _per_route_config({"disabled": True})


def hash_policy() -> list[dict[str, Any]]:
    """The ``hash_policy`` of a route: by the sequence. A request without one goes anywhere."""
    return [{"header": {"header_name": SEQUENCE}}]


def _per_route_config(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        _FILTER: {
            "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig",
            "config": {"@type": f"{_TYPE}.LuaPerRoute", **settings},
        }
    }
