"""A limit on the body of requests that should have none.

Decides how much a request other than POST may carry. In HTTP/2 a GET may send a body without end
and without announcing it, and Triton would keep all of it. Must not know which routes have the
limit (see ``enabled``). Source: Envoy's page "Buffer" (HTTP filters).
"""

from __future__ import annotations

from typing import Any

_BUFFER = "envoy.filters.http.buffer"
_TYPE = "type.googleapis.com/envoy.extensions.filters.http.buffer.v3"
#: Envoy buffers that much before it passes a request on. A request without a body is not buffered.
MAX_BYTES = 16 * 1024


def http_filter() -> dict[str, Any]:
    """The filter for the connection manager. It is off unless a route turns it on."""
    return {"name": _BUFFER, "disabled": True, "typed_config": _buffer()}


def enabled(max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Per-filter configuration of a route that turns the filter on."""
    return _per_route_config({"buffer": {"max_request_bytes": max_bytes}})


def inactive() -> dict[str, Any]:
    """Per-filter configuration under which the filter is there and does nothing (see
    ``jwt.other_filters``)."""
    return _per_route_config({"disabled": True})


def _per_route_config(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        _BUFFER: {
            "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig",
            "config": {"@type": f"{_TYPE}.BufferPerRoute", **settings},
        }
    }


def _buffer() -> dict[str, Any]:
    return {"@type": f"{_TYPE}.Buffer", "max_request_bytes": MAX_BYTES}
