"""JSON that is nested too deeply never reaches Triton.

Triton 2.51 reads JSON by recursion: at about 27,000 brackets within each other its thread has no
stack left, and the instance ends. Decides which bodies are looked at, and how deep they may be. As
in ``unsized_bodies``, such a request first finds a route that holds its body; once that was looked
at, the routes are evaluated again, where that one no longer matches. A body that is too short to be
that deep never passes these filters. Must not know the other routes (see ``metadata``). Sources:
Envoy's pages "Buffer" and "Lua" (HTTP filters).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amphitrite.dataplane.envoy.filters import bodiless_requests, sequence_affinity

#: Nobody's tensors have that many dimensions.
DEPTH_MAX = 1_000
#: Bodies below that many bytes are not looked at. They can open 20,000 arrays within each other.
#: A stack of 8 MiB is enough for that: Linux's default, and what a thread in a pod has.
LOOKED_AT_BYTES = 20_000
#: Nor are bodies above that: nobody holds that much for a look. Such a body may end one instance,
#: and is not sent to another, since so much is not kept.
HELD_BYTES = sequence_affinity.BUFFERED_BYTES

_FILTER = "amphitrite.nested_bodies"
_TYPE = "type.googleapis.com/envoy.extensions.filters.http.lua.v3"
#: In the route's metadata.
_TRITON = "triton"
#: In the dynamic metadata of a request.
_LOOKED_AT, _REFUSED = "looked_at", "refused"
_JSON_LENGTH = "inference-header-content-length"
#: A length of the JSON that is shorter than LOOKED_AT_BYTES.
_SHORT = r"0*(\d{1,4}|1\d{4})"
#: With Triton's binary data extension the JSON is the first part of the body, and a header gives
#: its length. Only ``infer`` has that, to which the scoring address itself leads. A length in
#: another form is not believed. Few brackets in all are found much faster than their depth. In a
#: body cannot be read here. What a user's own server reads is its own business.
_SCRIPT = f"""
local byte, find = string.byte, string.find

local function few(text, bracket, left)
  local at = find(text, bracket, 1, true)
  while at ~= nil and left > 0 do
    left = left - 1
    at = find(text, bracket, at + 1, true)
  end
  return left
end

local function deeper(text)
  local depth, i, size = 0, 1, #text
  while i <= size do
    local quote = nil
    for at = i, size do
      local code = byte(text, at)
      if code == 34 then
        quote = at
        break
      elseif code >= 91 then
        if code == 91 or code == 123 then
          depth = depth + 1
          if depth > {DEPTH_MAX} then return true end
        elseif code == 93 or code == 125 then
          depth = depth - 1
        end
      end
    end
    if quote == nil then return false end
    i = quote + 1
    while true do
      i = find(text, '["\\\\]', i)
      if i == nil then return false end
      if byte(text, i) == 34 then break end
      i = i + 2
    end
    i = i + 1
  end
  return false
end

function envoy_on_request(handle)
  if handle:filterContext():get("on") == nil then return end
  handle:streamInfo():dynamicMetadata():set("{_FILTER}", "{_LOOKED_AT}", true)
  handle:clearRouteCache()
  local route = handle:metadata():get("{_TRITON}")
  local headers = handle:headers()
  local coding = headers:get("content-encoding")
  if route == nil or (coding ~= nil and coding ~= "identity") then return end
  local path, json = headers:get(":path"), headers:get("{_JSON_LENGTH}")
  local believed = json ~= nil and find(json, "^%d+$") ~= nil
    and (route == "address" or find(path, "^[^?]*/infer$") ~= nil or find(path, "^[^?]*/infer%?") ~= nil)
  local body = handle:body()
  if body == nil then return end
  local size = body:length()
  if believed then size = math.min(size, tonumber(json)) end
  if size < {LOOKED_AT_BYTES} then return end
  local text = body:getBytes(0, size)
  if few(text, "[", few(text, "{{", {DEPTH_MAX})) > 0 or not deeper(text) then return end
  handle:streamInfo():dynamicMetadata():set("{_FILTER}", "{_REFUSED}", true)
  handle:respond({{[":status"] = "400"}}, "the JSON of the body is nested more than {DEPTH_MAX} levels deep")
end
"""


def http_filter() -> dict[str, Any]:
    """The filter for the connection manager, after ``unsized_bodies``. It is off unless a route
    turns it on."""
    lua = {"@type": f"{_TYPE}.Lua", "default_source_code": {"inline_string": _SCRIPT}}
    return {"name": _FILTER, "disabled": True, "typed_config": lua}


def routes(endpoint: str, post: dict[str, Any], refusal: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The ``Route`` messages for requests whose bodies are looked at; ``refusal``: what answers if
    the filter does not run."""
    length = {"name": "content-length", "range_match": {"start": LOOKED_AT_BYTES, "end": HELD_BYTES + 1}}
    filters = {
        **sequence_affinity.inactive(),
        **bodiless_requests.enabled(HELD_BYTES),
        **_config({"filter_context": {"on": True}}),
    }
    infer = rf"[^?]*/infer(\?.*)?|/endpoints/{endpoint}/?(\?.*)?"
    for condition in (_not(_JSON_LENGTH, _SHORT), _not(":path", infer)):
        match = {"prefix": "/", "headers": [post, length, condition], "dynamic_metadata": [_not_looked_at()]}
        yield {"match": match, **refusal, "name": "//", "typed_per_filter_config": filters}


def inactive() -> dict[str, Any]:
    """Per-filter configuration under which the filter is there and does nothing (see
    ``jwt.other_filters``)."""
    return _config({"disabled": True})


def metadata(*, at_address: bool = False) -> dict[str, Any]:
    """Filter metadata of a route that leads to Triton. ``at_address``: it is the scoring address
    itself."""
    return {_FILTER: {_TRITON: "address" if at_address else "below"}}


def refused() -> dict[str, Any]:
    """The condition (``AccessLogFilter``) that this filter has refused a request."""
    return {"metadata_filter": {"matcher": _flag(_REFUSED), "match_if_key_not_found": False}}


def _not_looked_at() -> dict[str, Any]:
    return {**_flag(_LOOKED_AT), "invert": True}


def _flag(name: str) -> dict[str, Any]:
    return {"filter": _FILTER, "path": [{"key": name}], "value": {"bool_match": True}}


def _not(header: str, regex: str) -> dict[str, Any]:
    match = {"safe_regex": {"regex": regex}}
    return {"name": header, "string_match": match, "invert_match": True, "treat_missing_header_as_empty": True}


def _config(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        _FILTER: {
            "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig",
            "config": {"@type": f"{_TYPE}.LuaPerRoute", **settings},
        }
    }
