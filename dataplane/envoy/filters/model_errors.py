"""A model's failure, told apart from the proxy's: 424 with the model server's own status, reason and body.

Decides which answers count as a model's failure and how they are marked. Only Lua can change the status of an answer
that comes from upstream and leave its body alone. The script exists for answers alone that may be such a failure, so
that one that succeeds does not pay for it; whether it is one is then said by the route (see ``metadata``).

At the scoring address itself Triton's ``{"error": "text"}`` becomes ``{"error": {"code", "message"}}``: that is where
``invoke`` of Azure's SDK posts, which reads ``message`` and has an error of its own where there is none. Clients of
Triton post below it, and get Triton's words as they are.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from amphitrite.dataplane.envoy.filters import conditional_filters
from amphitrite.dataplane.envoy.filters.conditional_filters import answer_begins_otherwise, answered, both

#: Also the namespace of a route's metadata that the script reads.
_FILTER = "amphitrite.model_errors"
_REASONS = ", ".join(f'["{s.value}"] = "{s.phrase}"' for s in HTTPStatus if s.value >= 300)

_ADDRESS = "address"
_BELOW = "below"
#: The router sets it on every upstream's answer and on none of its own.
_UPSTREAMS = "x-envoy-upstream-service-time"
#: Nothing longer is held to look for Triton's words in it: Envoy answers 500 where a body is more than it can hold.
_WORDS_MAX = 64 * 1024
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
  if (tonumber(headers:get("content-length")) or 0) > {_WORDS_MAX} then return end
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
    """The filter for the connection manager: the script, for an upstream's answers other than 1xx and 2xx."""
    failed = both(
        answer_begins_otherwise(":status", "2"), answer_begins_otherwise(":status", "1"), answered(_UPSTREAMS)
    )
    lua = {
        "name": _FILTER,
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua",
            "default_source_code": {"inline_string": _SCRIPT},
        },
    }
    return conditional_filters.http_filter(_FILTER, failed, [lua])


def metadata(*, at_address: bool = False) -> dict[str, Any]:
    """Filter metadata of a route whose failures are a model's. ``at_address``: it is the scoring address itself."""
    return {_FILTER: {"posted": _ADDRESS if at_address else _BELOW}}
