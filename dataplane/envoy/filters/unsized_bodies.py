"""Bodies whose length is not announced: chunked in HTTP/1.1, without ``content-length`` in HTTP/2.

Triton takes no length for a length of 0, and chunks can end it, so such a body is held until it is
complete and forwarded with its length. Decides how: the request first finds a route that refuses
it. On that route the filter ``buffer`` holds the body, up to the limit, and sets the header; then
the routes are evaluated again, where that one no longer matches. Requests with a length never pass
these filters. Must not know the limit (see ``route``) nor the other routes. Source: Envoy's pages
"Buffer" and "Lua" (HTTP filters).
"""

from __future__ import annotations

from typing import Any

from amphitrite.dataplane.envoy.filters import bodiless_requests, nested_bodies, sequence_affinity
from amphitrite.dataplane.envoy.filters.local_replies import METADATA, direct

_FILTER = "amphitrite.unsized_bodies"
_TYPE = "type.googleapis.com/envoy.extensions.filters.http.lua.v3"
#: Runs when ``buffer`` has passed the request on. No filter but Lua can have the routes evaluated
#: again. A request without any body has no length either.
_SCRIPT = """
function envoy_on_request(handle)
  if handle:headers():get("content-length") == nil then handle:headers():add("content-length", "0") end
  handle:clearRouteCache()
end
"""


def http_filter() -> dict[str, Any]:
    """The filter for the connection manager, after ``bodiless_requests``, whose filter holds the
    body. It is off unless a route turns it on."""
    lua = {"@type": f"{_TYPE}.Lua", "default_source_code": {"inline_string": _SCRIPT}}
    return {"name": _FILTER, "disabled": True, "typed_config": lua}


def route(match: dict[str, Any], max_bytes: int) -> dict[str, Any]:
    """The ``Route`` for requests without a length. Beyond ``max_bytes`` the answer is 413."""
    refusal = {**direct(411, "LengthRequired", "the length of the body is not known"), "name": "//"}
    values = refusal["metadata"]["filter_metadata"][METADATA]
    values["max_unsized_bytes"] = str(max_bytes)
    # Which filters a request passes is decided by the route that it finds first: this one.
    filters = {
        **sequence_affinity.inactive(),
        **nested_bodies.inactive(),
        **bodiless_requests.enabled(max_bytes),
        **_config({"filter_context": {}}),
    }
    return {"match": match, **refusal, "typed_per_filter_config": filters}


def inactive() -> dict[str, Any]:
    """Per-filter configuration under which the filter is there and does nothing (see
    ``jwt.other_filters``)."""
    return _config({"disabled": True})


def _config(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        _FILTER: {
            "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig",
            "config": {"@type": f"{_TYPE}.LuaPerRoute", **settings},
        }
    }
