"""Requests that have no business with a body: a bound for whatever comes with them nevertheless.

Decides how much a request other than POST may carry. HTTP/2 lets a GET send a body without end and without announcing
it, and Triton would keep all of it. Must not know which routes are so bounded (see ``enabled``).
"""

from __future__ import annotations

from typing import Any

_BUFFER = "envoy.filters.http.buffer"
_TYPE = "type.googleapis.com/envoy.extensions.filters.http.buffer.v3"
#: Envoy holds that much before it passes a request on; one without a body is not held at all.
MAX_BYTES = 16 * 1024


def http_filter() -> dict[str, Any]:
    """The filter for the connection manager, off unless a route asks for it."""
    return {"name": _BUFFER, "disabled": True, "typed_config": _buffer()}


def enabled() -> dict[str, Any]:
    """The part of a ``Route`` that turns the filter on."""
    return {"typed_per_filter_config": _here({"buffer": {"max_request_bytes": MAX_BYTES}})}


def waiting() -> dict[str, Any]:
    """Per-filter configuration under which the filter is there and does nothing (see ``tokens``)."""
    return _here({"disabled": True})


def _here(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        _BUFFER: {
            "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig",
            "config": {"@type": f"{_TYPE}.BufferPerRoute", **settings},
        }
    }


def _buffer() -> dict[str, Any]:
    return {"@type": f"{_TYPE}.Buffer", "max_request_bytes": MAX_BYTES}
