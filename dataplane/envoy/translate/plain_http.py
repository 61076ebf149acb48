"""HTTP without TLS at the scoring port: one answer, that it takes HTTPS alone.

Decides which connections are answered so (those that do not begin with TLS), the answer, and that
each connection ends with it. Nothing of such a request is passed on, and no route, key or endpoint
is looked for. Must not know any of them. Source: Envoy's API page "TLS Inspector".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amphitrite.dataplane.envoy.filters.local_replies import Refusal, direct
from amphitrite.dataplane.envoy.translate import grpc_routes

_ERRORS = {"default_value": 400, "runtime_key": "amphitrite.plain"}
_MATCH = {"transport_protocol": "raw_buffer"}
#: In place of all responses, also of those to what is no HTTP. It has the client's own name for
#: this port, so that the address can be copied.
_ANSWER = Refusal(
    {"status_code_filter": {"comparison": {"op": "GE", "value": _ERRORS}}},
    "HttpsRequired",
    "a plain HTTP request was sent to a port that takes HTTPS: the address is https://%REQ(:AUTHORITY)%",
    status=400,
)
_KIND = "type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"


def inspector() -> dict[str, Any]:
    """The listener filter that tells TLS from anything else, and reads the server name from it."""
    return {"name": "envoy.filters.listener.tls_inspector", "typed_config": {"@type": _KIND}}


def filter_chain(manager: Mapping[str, Any]) -> dict[str, Any]:
    """The filter chain. ``manager``: the ``HttpConnectionManager`` for TLS, whose limits and access
    log count here too."""
    kept = {name: value for name, value in manager.items() if name not in ("scoped_routes", "http_filters")}
    route = {"match": {"prefix": "/"}, **direct(400, _ANSWER.code, _ANSWER.message)}
    routes = [grpc_routes.as_grpc(route), route]
    (*_, router) = manager["http_filters"]
    plain = {
        **kept,
        "http_filters": [router],
        "route_config": {"name": "plain", "virtual_hosts": [{"name": "plain", "domains": ["*"], "routes": routes}]},
        "local_reply_config": grpc_routes.local_reply_config_of(_ANSWER),
        "common_http_protocol_options": {
            **manager["common_http_protocol_options"],
            "idle_timeout": "10s",
            "max_requests_per_connection": 1,
        },
    }
    return {
        "name": "plain HTTP",
        "filter_chain_match": _MATCH,
        "filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": plain}],
    }
