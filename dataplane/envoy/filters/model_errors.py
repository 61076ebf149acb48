"""A model's failure: 424, with the status, reason and body of the model server.

Decides which responses count as a model's failure and how they are marked. Only Lua can change the
status of a response from upstream and keep its body. The script runs only for responses that may be
such a failure, so a success costs nothing. The route then says whether it is one (see
``metadata``).

At the scoring address itself, Triton's ``{"error": "text"}`` becomes ``{"error": {"code",
"message"}}``. The ``invoke`` of Azure's SDK posts there. It reads ``message``, and fails itself
where there is none. Triton's clients post below that address and get Triton's text unchanged. Must
not know which model failed.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from amphitrite.dataplane.envoy.filters import conditional_filters
from amphitrite.dataplane.envoy.filters.conditional_filters import Rule, all_of, response_has, response_lacks_prefix

#: Also the namespace of the route's metadata that the script reads.
_FILTER = "amphitrite.model_errors"
_REASONS = ", ".join(f'["{s.value}"] = "{s.phrase}"' for s in HTTPStatus if s.value >= 300)

_ADDRESS = "address"
_BELOW = "below"
#: The router sets this header on every response from upstream and on none of its own.
_UPSTREAM_HEADER = "x-envoy-upstream-service-time"
#: A longer body is not searched for Triton's message. Envoy answers 500 where it cannot buffer a
#: body.
_MESSAGE_BYTES_MAX = 64 * 1024
_SCRIPT = f"""
local reasons = {{{_REASONS}}}
function envoy_on_response(handle)
  local where = handle:metadata():get("posted")
  if where == nil then return end
  local headers = handle:headers()
  local status = headers:get(":status")
  headers:replace("ms-azureml-model-error-statuscode", status)
  headers:replace("ms-azureml-model-error-reason", reasons[status] or "Unknown")
  headers:replace(":status", "424")
  if where ~= "{_ADDRESS}" then return end
  if (tonumber(headers:get("content-length")) or 0) > {_MESSAGE_BYTES_MAX} then return end
  local body = handle:body()
  if body == nil then return end
  local message = string.match(body:getBytes(0, body:length()), '^%s*{{%s*"error"%s*:%s*(".*")%s*}}%s*$')
  if message == nil then return end
  local plain = string.gsub(string.sub(message, 2, -2), "\\\\.", "")
  if string.find(plain, '"', 1, true) ~= nil then return end
  local size = body:setBytes('{{"error": {{"code": "ModelError", "message": ' .. message .. '}}}}')
  handle:headers():replace("content-length", size)
end
"""


def http_filter() -> dict[str, Any]:
    """The filter for the connection manager: the script, for responses from upstream other than 1xx
    and 2xx."""
    failure = all_of(
        response_lacks_prefix(":status", "2"), response_lacks_prefix(":status", "1"), response_has(_UPSTREAM_HEADER)
    )
    lua = {
        "name": _FILTER,
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua",
            "default_source_code": {"inline_string": _SCRIPT},
        },
    }
    return conditional_filters.http_filter(_FILTER, Rule(failure, [lua]))


def metadata(*, at_address: bool = False) -> dict[str, Any]:
    """Filter metadata of a route whose failures are a model's. ``at_address``: it is the scoring
    address itself."""
    return {_FILTER: {"posted": _ADDRESS if at_address else _BELOW}}
