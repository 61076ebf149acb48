"""What can be taken out of what the agent gives Envoy, one part at a time: JSON in, JSON out.

Decides what each part is. It looks for shapes of Envoy's messages, not for places in ours, so that
it goes on working when a listener moves. A test keeps that each part is there to be taken out: else
it would seem to cost nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

Edit = Callable[[dict[str, Any]], None]


def _without(*keys: str) -> Edit:
    def edit(value: dict[str, Any]) -> None:
        for key in keys:
            value.pop(key, None)

    return edit


def _filters(remove: Callable[[str], bool]) -> Edit:
    def edit(value: dict[str, Any]) -> None:
        if isinstance(filters := value.get("http_filters"), list):
            value["http_filters"] = [f for f in filters if not remove(str(f))]

    return edit


def _routes(remove: Callable[[dict[str, Any]], bool]) -> Edit:
    def edit(value: dict[str, Any]) -> None:
        if isinstance(routes := value.get("routes"), list):
            value["routes"] = [r for r in routes if not remove(r)]

    return edit


def _refusal(route: dict[str, Any]) -> bool:
    return "direct_response" in route and route["direct_response"].get("status") != 401


def _unauthenticated(route: dict[str, Any]) -> bool:
    return bool(route.get("direct_response", {}).get("status") == 401)


def _no_request_id(value: dict[str, Any]) -> None:
    if "generate_request_id" in value:
        value.update(generate_request_id=False, always_set_request_id_in_response=False)


def _no_tls(value: dict[str, Any]) -> None:
    """Nor what tells plain HTTP from TLS, and answers it."""
    _without("transport_socket", "transport_socket_connect_timeout")(value)
    if isinstance(chains := value.get("filter_chains"), list):
        value["filter_chains"] = [one for one in chains if one.get("name") != "plain HTTP"]
        value.pop("listener_filters", None)


#: name -> (what it is, the edit of every JSON object).
PARTS: dict[str, tuple[str, Edit]] = {
    "tls": ("TLS towards clients", _no_tls),
    "access_log": ("the access log", _without("access_log")),
    "lua": ("filters in Lua", _filters(lambda f: "filters.http.lua" in f)),
    "filters": (
        "all filters but the router and the one of tokens",
        _filters(lambda f: "filters.http.router" not in f and "config_discovery" not in f),
    ),
    "key": ("the check of the key", _routes(_unauthenticated)),
    "refusals": ("refusing routes (403, 404, 405, 411, 413)", _routes(_refusal)),
    "normal_path": (
        "one way to write a path",
        _without("normalize_path", "merge_slashes", "path_with_escaped_slashes_action"),
    ),
    "request_id": ("request ids", _no_request_id),
    "headers": ("headers added and removed", _without("response_headers_to_add", "request_headers_to_remove")),
    "local_reply": ("errors in one form", _without("local_reply_config")),
    "retries": ("retries of lost requests", _without("retry_policy", "retry_host_predicate")),
    "per_route": ("filters' settings by route", _without("typed_per_filter_config")),
    "metadata": ("names in the routes, for log and errors", _without("metadata")),
}


def edited(value: dict[str, Any], parts: list[str]) -> dict[str, Any]:
    """A copy of ``value`` without ``parts``."""
    result = copy.deepcopy(value)
    for part in parts:
        _walk(result, PARTS[part][1])
    return result


def _walk(value: object, edit: Edit) -> None:
    if isinstance(value, dict):
        edit(value)
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _walk(child, edit)
