"""Requests of one sequence go to one instance: the model server keeps state between them.

Decides which sequence a request belongs to: the header ``amphitrite-sequence``, or the parameter
``sequence_id`` of Triton's JSON or gRPC message, which every client of Triton sends. Must not know
which routes need it (see ``enabled``). Only those pay for it: the body is buffered until the
instance is chosen. Source: Triton's document "Sequence Extension".
"""

from __future__ import annotations

from typing import Any

from amphitrite.dataplane.envoy.filters import sequence_messages, sequence_streams, sequence_texts

#: The header that names a request's sequence. Its hash chooses the instance.
SEQUENCE = "amphitrite-sequence"

#: The most of a body that is buffered until its sequence is known. A larger body is answered 413.
BUFFERED_BYTES = 16 * 1024 * 1024
#: The most bytes of an id that is a text, where models take ids as numbers. A longer one ends
#: Triton 2.51: it writes the text where a number has room.
TEXT_ID_BYTES_MAX = 20

_FILTER = "amphitrite.sequences"
_TYPE = "type.googleapis.com/envoy.extensions.filters.http.lua.v3"


#: In the context of the routes that are searched. The filter is also there on a route without any
#: configuration of it, if the request has found one with ``inactive`` first.
_READ = "read"
#: In the context of the routes to models that take ids as numbers.
_NUMBERS = "numbers"
#: In the context of the routes of streams, which are not searched but checked as they pass.
_STREAM = "stream"
#: Stands for the size of the body in the text of a refusal.
_SIZE = "@SIZE@"

#: Texts alone: ``local_replies`` gives them the form of a body.
_MESSAGE = "this deployment serves sequences, and {what}"
_NUMBERS_MESSAGE = "this deployment's models take sequence ids as numbers, and {what}"
_COMPRESSED = "a compressed body does not show its sequence"
_LARGE = f"a body of more than {BUFFERED_BYTES} bytes (this one has {_SIZE}) is not searched for its sequence"
_MANY = (
    f"at most {sequence_messages.FIELDS_MAX} fields of a message, and {sequence_texts.NAMES_MAX} places with the name "
    "sequence_id in a text, are searched for the sequence"
)
#: What can be wrong -> the text, and the one where models take ids as numbers.
_FAULTS = {
    "compressed": (_COMPRESSED, _COMPRESSED),
    "large": (_LARGE, _LARGE),
    "many": (_MANY, _MANY),
    "unreadable": ("the value of sequence_id cannot be read",) * 2,
    "escaped": ("", "the name sequence_id may not be written with escaped letters"),
    "long": ("", f"a text for sequence_id may have at most {TEXT_ID_BYTES_MAX} bytes"),
}
#: What helps: where ids are numbers, every request is searched.
_NAME_IT = ": name the sequence in the header " + SEQUENCE


def _lua_table(texts: dict[str, str]) -> str:
    return "{" + ", ".join(f'["{key}"] = "{text}"' for key, text in texts.items()) + "}"


_TEXTS = _lua_table({fault: _MESSAGE.format(what=one) + _NAME_IT for fault, (one, _) in _FAULTS.items() if one})
_NUMBERS_TEXTS = _lua_table({fault: _NUMBERS_MESSAGE.format(what=one) for fault, (_, one) in _FAULTS.items()})
#: The dynamic metadata of a request that the filter refuses.
_REFUSED = "refused"
#: With Triton's binary data extension the JSON is the first part of the body, and a header gives
#: its length. A length in another form is not believed. Clients send a ``sequence_id`` of 0 or ""
#: for no sequence. Headers read before the body has arrived must not be used afterwards. A gRPC
#: message itself says whether it is compressed. With the header, a request is read only where
#: models take numbers.
_SCRIPT = f"""{sequence_messages.LUA}{sequence_texts.LUA}{sequence_streams.LUA}
local texts, texts_of_numbers = {_TEXTS}, {_NUMBERS_TEXTS}

local function refuse(handle, status, longest, fault, size)
  local text = (longest ~= nil and texts_of_numbers or texts)[fault]
  handle:streamInfo():dynamicMetadata():set("{_FILTER}", "{_REFUSED}", true)
  handle:respond({{[":status"] = status}}, (string.gsub(text, "{_SIZE}", string.format("%d", size or 0))))
end

local function search_message(handle, named, longest)
  local body = handle:body()
  if body == nil or body:length() < 5 then return end
  if string.byte(body:getBytes(0, 1)) ~= 0 then
    return refuse(handle, "415", longest, "compressed")
  end
  local id, wrong = sequence_of(body, longest)
  if wrong ~= nil then return refuse(handle, "400", longest, wrong) end
  if named or id == nil or id == "" or id == "0" then return end
  handle:headers():add("{SEQUENCE}", (string.gsub(id, "[^%w_%.:@/+=%-]", "_")))
end

local function search_text(handle, named, longest, json_length)
  local body = handle:body()
  if body == nil then return end
  local size = body:length()
  if json_length ~= nil and string.find(json_length, "^%d+$") ~= nil then
    size = math.min(size, tonumber(json_length))
  end
  local id, wrong = sequence_in_text(body, size, longest)
  if wrong ~= nil then return refuse(handle, "400", longest, wrong) end
  if named or id == nil or id == "0" then return end
  handle:headers():add("{SEQUENCE}", string.sub(id, 1, 256))
end

function envoy_on_request(handle)
  local context = handle:filterContext()
  if context:get("{_READ}") == nil then return end
  local longest = context:get("{_NUMBERS}") and {TEXT_ID_BYTES_MAX} or nil
  local headers = handle:headers()
  if context:get("{_STREAM}") then
    local coding = headers:get("grpc-encoding") or "identity"
    if coding ~= "identity" then return refuse(handle, "415", longest, "compressed") end
    return check_stream(handle, longest)
  end
  local named = headers:get("{SEQUENCE}") ~= nil
  if named and longest == nil then return end
  local kind = headers:get("content-type") or ""
  if kind == "application/grpc" or string.find(kind, "application/grpc+", 1, true) == 1 then
    return search_message(handle, named, longest)
  end
  local encoding = headers:get("content-encoding")
  if encoding ~= nil and encoding ~= "identity" then
    return refuse(handle, "415", longest, "compressed")
  end
  local size = tonumber(headers:get("content-length") or "0") or 0
  if size > {BUFFERED_BYTES} then return refuse(handle, "413", longest, "large", size) end
  return search_text(handle, named, longest, headers:get("inference-header-content-length"))
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


def enabled(*, numbers: bool, stream: bool = False) -> dict[str, Any]:
    """Per-filter configuration of a route that turns the filter on. ``numbers``: its models take
    ids as numbers. ``stream``: it takes streams, not whole requests: only for numbers."""
    flags = {_NUMBERS: numbers, _STREAM: stream}
    return _per_route_config({"filter_context": {_READ: True} | {flag: True for flag, on in flags.items() if on}})


def inactive() -> dict[str, Any]:
    """Per-filter configuration under which the filter is there and does nothing (see
    ``jwt.other_filters``)."""
    return _per_route_config({"disabled": True})


def refused() -> dict[str, Any]:
    """The condition (``AccessLogFilter``) that this filter has refused a request."""
    value = {"filter": _FILTER, "path": [{"key": _REFUSED}], "value": {"bool_match": True}}
    return {"metadata_filter": {"matcher": value, "match_if_key_not_found": False}}


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
