"""A model's failure, told apart from the proxy's: 424 with the model server's own status, reason and body.

Decides which answers count as a model's failure and how they are marked. Only Lua can change the status of an answer
that comes from upstream and leave its body alone; the script runs on scoring requests only (see ``enabled``).

At the scoring address itself Triton's ``{"error": "text"}`` becomes ``{"error": {"code", "message"}}``: that is where
``invoke`` of Azure's SDK posts, which reads ``message`` and has an error of its own where there is none. Clients of
Triton post below it, and get Triton's words as they are.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

_LUA = "envoy.filters.http.lua"
_TYPE = "type.googleapis.com/envoy.extensions.filters.http.lua.v3"
_REASONS = ", ".join(f'["{s.value}"] = "{s.phrase}"' for s in HTTPStatus if s.value >= 300)

#: Key of the filter's context on routes of the scoring address itself.
_AT_ADDRESS = "address"
#: The router sets x-envoy-upstream-service-time on every upstream's answer and on none of its own.
_SCRIPT = f"""
local reasons = {{{_REASONS}}}
function envoy_on_response(handle)
  local headers = handle:headers()
  local status = headers:get(":status")
  if status < "300" or headers:get("x-envoy-upstream-service-time") == nil then return end
  headers:replace("ms-azureml-model-error-statuscode", status)
  headers:replace("ms-azureml-model-error-reason", reasons[status] or "Unknown")
  headers:replace(":status", "424")
  if handle:filterContext():get("{_AT_ADDRESS}") == nil then return end
  local body = handle:body()
  if body == nil then return end
  local words = string.match(body:getBytes(0, body:length()), '^%s*{{%s*"error"%s*:%s*(".*")%s*}}%s*$')
  if words == nil then return end
  local plain = string.gsub(string.sub(words, 2, -2), "\\\\.", "")
  if string.find(plain, '"', 1, true) ~= nil then return end
  local size = body:setBytes('{{"error": {{"code": "ModelError", "message": ' .. words .. '}}}}')
  handle:headers():replace("content-length", size)
end
"""


def http_filter() -> dict[str, Any]:
    """The filter for the connection manager, off unless a route asks for it."""
    return {
        "name": _LUA,
        "disabled": True,
        "typed_config": {
            "@type": f"{_TYPE}.Lua",
            "default_source_code": {"inline_string": _SCRIPT},
        },
    }


def enabled(*, at_address: bool = False) -> dict[str, Any]:
    """The part of a ``Route`` that turns the filter on. ``at_address``: the route is the scoring address itself."""
    return {"typed_per_filter_config": _here({"filter_context": {_AT_ADDRESS: True} if at_address else {}})}


def waiting() -> dict[str, Any]:
    """Per-filter configuration under which the filter is there and does nothing (see ``tokens``)."""
    return _here({"disabled": True})


def _here(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        _LUA: {
            "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig",
            "config": {"@type": f"{_TYPE}.LuaPerRoute", **settings},
        }
    }
