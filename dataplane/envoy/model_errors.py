"""A model's failure, told apart from the proxy's: 424 with the model server's own status, reason and body.

Decides which answers count as a model's failure and how they are marked. Only Lua can change the status of an answer
that comes from upstream and leave its body alone; the script runs on scoring requests only (see ``enabled``).
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

_LUA = "envoy.filters.http.lua"
_TYPE = "type.googleapis.com/envoy.extensions.filters.http.lua.v3"
_REASONS = ", ".join(f'["{s.value}"] = "{s.phrase}"' for s in HTTPStatus if s.value >= 300)

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


def enabled() -> dict[str, Any]:
    """The part of a ``Route`` that turns the filter on."""
    return {
        "typed_per_filter_config": {
            _LUA: {
                "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig",
                "config": {"@type": f"{_TYPE}.LuaPerRoute", "filter_context": {}},
            }
        }
    }
