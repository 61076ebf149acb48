"""Requests to a deployment that sleeps are held in Envoy until it can serve them.

Decides how: the filter ``ext_authz`` asks the agent and stops the request meanwhile. The agent's
"yes" comes when an instance can serve. It has the routes evaluated again, and they name that
instance's cluster by then. No byte of a request leaves Envoy, and a client that sends more than a
connection may buffer is not read from. Must not know when the agent answers
(``callouts``). Sources: Envoy's page "External Authorization", the API package
``service.auth.v3``.

Which filters a request passes is decided by the route that it finds first. A request whose body
is being awaited (``sequence_affinity``, ``bodiless_requests``) has found its route long before it
is forwarded. So the routes of a deployment that may fall asleep have these filters too, without
effect, and after such a wait the routes are evaluated again.
"""

from __future__ import annotations

from typing import Any

from amphitrite.dataplane.envoy.filters.local_replies import AGENT_GONE
from amphitrite.dataplane.envoy.protobuf.common_values import seconds
from amphitrite.dataplane.table.routing_table import Target

#: The cluster of the agent's service, whose requests are those that Envoy holds, and the one that
#: has no instance.
HOLD_CLUSTER, EMPTY_CLUSTER = "holds", "asleep"
#: What the filter tells the agent of a request: ``context_extensions`` of the ``CheckRequest``.
ENDPOINT, DEPLOYMENT, TIMEOUT_MS, STREAM = "endpoint", "deployment", "timeout_ms", "stream"
#: The response header that limits what is left of the time. A client's own is ignored.
TIME_LEFT = "x-envoy-upstream-rq-timeout-ms"
#: On every "yes": without any header the routes are not evaluated again. Instances see it too.
WOKEN = "amphitrite-held-ms"

_FILTER = "envoy.filters.http.ext_authz"
_TYPE = "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3"
_REREAD = "amphitrite.routes_after_wait"
_LUA = "type.googleapis.com/envoy.extensions.filters.http.lua.v3"
_SCRIPT = """
function envoy_on_request(handle)
  handle:clearRouteCache()
end
"""
#: How much longer than it may be held a request may pass no byte. The agent should be the one that
#: tells the client why.
_MARGIN_S = 10.0
#: How often the filter asks again while no agent answers. The pauses double, and a request may take
#: less time than all of them.
_ATTEMPTS = 20


def http_filters() -> list[dict[str, Any]]:
    """The filters for the connection manager, after all that wait for a body. They are off unless a
    route turns them on."""
    lua = {"@type": f"{_LUA}.Lua", "default_source_code": {"inline_string": _SCRIPT}}
    return [
        {"name": _REREAD, "disabled": True, "typed_config": lua},
        {
            "name": _FILTER,
            "disabled": True,
            "typed_config": {
                "@type": f"{_TYPE}.ExtAuthz",
                "transport_api_version": "V3",
                "clear_route_cache": True,
                "status_on_error": {"code": AGENT_GONE},
                # All headers otherwise, the credentials among them.
                "allowed_headers": {"patterns": [{"exact": "x-request-id"}]},
                "grpc_service": {
                    # The agent's own deadline counts: by default it would be 200 ms.
                    "timeout": "0s",
                    "envoy_grpc": {"cluster_name": HOLD_CLUSTER},
                    "retry_policy": {
                        "retry_on": "unavailable,reset,connect-failure",
                        "num_retries": _ATTEMPTS,
                        # Envoy takes the longest pause for the time limit of each attempt.
                        "retry_back_off": {"base_interval": "0.05s", "max_interval": "300s"},
                    },
                },
            },
        },
    ]


def filters(endpoint: str, target: Target, *, stream: bool = False, waits: bool = False) -> dict[str, Any]:
    """Per-filter configuration of a route to ``target``. ``stream``: only pauses count there.
    ``waits``: another filter of the route waits for a body."""
    if target.hold == "never":
        return {}
    if target.hold == "ready":
        return {**_held({"disabled": True}), **(_reread({"filter_context": {}}) if waits else {})}
    told = {
        ENDPOINT: endpoint,
        DEPLOYMENT: target.name,
        TIMEOUT_MS: f"{target.timeout_s * 1000:.0f}",
        STREAM: "1" if stream else "",
    }
    return _held({"check_settings": {"context_extensions": told}})


def inactive() -> dict[str, Any]:
    """Per-filter configuration under which the filters are there and do nothing (see
    ``jwt.other_filters``)."""
    return {**_held({"disabled": True}), **_reread({"disabled": True})}


def pauses(timeout_s: float) -> dict[str, str]:
    """The part of a ``RouteAction`` that lets a request wait for as long as it may be held."""
    return {"idle_timeout": seconds(timeout_s + _MARGIN_S)}


def _held(settings: dict[str, Any]) -> dict[str, Any]:
    return {_FILTER: _config({"@type": f"{_TYPE}.ExtAuthzPerRoute", **settings})}


def _reread(settings: dict[str, Any]) -> dict[str, Any]:
    return {_REREAD: _config({"@type": f"{_LUA}.LuaPerRoute", **settings})}


def _config(config: dict[str, Any]) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "config": config}
