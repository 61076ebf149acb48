"""One RouteConfiguration for each scoring address, and the scope that selects it by the path's second element.

Decides, in this order, what happens to a request: 404 outside ``/endpoints/``, 401, 403 for paths that steer the model
server, 413, 411, 405, then a target: by the header that pins, else by the split. The order is the security of it:
nothing below the 401 is reached without a key or a token. Must not know how the resources reach Envoy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from amphitrite.dataplane.envoy.filters import cors, credential_uses, jwt
from amphitrite.dataplane.envoy.filters.local_replies import METADATA, direct, direct_format
from amphitrite.dataplane.envoy.filters.sequence_affinity import HELD_BYTES
from amphitrite.dataplane.envoy.translate import grpc_routes
from amphitrite.dataplane.envoy.translate.target_routes import (
    DEPLOYMENT,
    POST,
    RETRY_NOT_RUN,
    Mirror,
    Placed,
    target_routes,
)
from amphitrite.dataplane.table.routing_table import Route

_INT64_MAX = 2**63 - 1
#: Paths by which Triton's HTTP API changes or reveals the server: model repository, shared memory, trace, logging.
_REFUSED = (
    r"(?i)/endpoints/[^/]+/v2/(repository|[a-z]*sharedmemory|trace|logging"
    r"|models/[^/]+(/versions/[^/]+)?/trace)([^a-z].*)?"
)
_DIRECT_BODY_MAX = 64 * 1024
_CHALLENGE = {"www-authenticate": "Bearer"}


def scope(name: str) -> dict[str, Any]:
    """The ``ScopedRouteConfiguration`` that sends ``/endpoints/<name>…``, or what comes to the host ``name``, to the
    RouteConfiguration ``name``."""
    return {
        "name": name,
        "route_configuration_name": name,
        "key": {"fragments": [{"string_key": name}]},
    }


def route_configuration(
    route: Route, bounds: Mapping[str, int], max_body_bytes: int, by_grpc: Collection[str] = ()
) -> dict[str, Any]:
    """A ``RouteConfiguration``. It holds the accepted keys as plain text.

    ``bounds``: by cluster, how many requests may be in flight (for the text of a 429). ``by_grpc``: the clusters that
    can be asked by gRPC.
    """
    routes = [*_grpc(route, bounds, by_grpc), *_refusals(route, max_body_bytes), *_selected(route, bounds)]
    for one in routes:
        one.setdefault("metadata", {"filter_metadata": {METADATA: {"endpoint": route.name}}})
        # Requests are counted under the name of their route, see ``stats``.
        if one.setdefault("name", "//").startswith("//"):
            one["name"] = route.name + one["name"]
    host: dict[str, Any] = {
        "name": route.name,
        "domains": ["*"],
        "routes": routes,
        "retry_policy": RETRY_NOT_RUN,
        "virtual_clusters": credential_uses.virtual_clusters(route),
    }
    if any(target.sequences for target in route.targets):
        # Of the host: a request with a token first finds another route than the one that holds its body.
        host["request_body_buffer_limit"] = str(HELD_BYTES)
    if route.cors:
        host |= cors.of_host(route.cors)
    if route.auth != "key":
        host["typed_per_filter_config"] = {**host.get("typed_per_filter_config", {}), **jwt.other_filters()}
    return {
        "name": route.name,
        "virtual_hosts": [host],
        "request_headers_to_remove": ["authorization", grpc_routes.ENDPOINT, grpc_routes.SCOPE],
        # The agent orders clusters before routes itself; a cluster that is missing nevertheless answers 503.
        "validate_clusters": False,
        "max_direct_response_body_size_bytes": _DIRECT_BODY_MAX,
    }


def _grpc(route: Route, bounds: Mapping[str, int], by_grpc: Collection[str]) -> Iterator[dict[str, Any]]:
    """As ``_refusals`` and ``_selected``, for requests in gRPC; none of them gets any further."""
    yield from grpc_routes.refusals(_unauthenticated(route))
    for placed, match, mirrors in _choices(route, bounds):
        yield from grpc_routes.target_routes(placed, match, mirrors, by_grpc)
    yield from (grpc_routes.spoken(one) for one in _nowhere(route))


def _refusals(route: Route, max_body_bytes: int) -> Iterator[dict[str, Any]]:
    yield {
        "match": {"prefix": "/", "headers": [_not(":path", {"prefix": "/endpoints/"})]},
        **direct(404, "ResourceNotFound", "scoring addresses are /endpoints/<endpoint>/"),
    }
    if route.cors:
        yield cors.preflight(route.cors)
    yield from _unauthenticated(route)
    yield {
        "match": {"safe_regex": {"regex": _REFUSED}},
        **direct(403, "Forbidden", "this part of the model server's API cannot be reached from outside"),
    }
    yield {
        "match": {
            "prefix": "/",
            "headers": [{"name": "content-length", "range_match": {"start": max_body_bytes + 1, "end": _INT64_MAX}}],
        },
        **direct_format(
            413,
            "RequestTooLarge",
            f"the body has %REQ(content-length)% bytes; at most {max_body_bytes} are accepted (max_body_bytes)",
        ),
    }
    yield {
        # A body of unknown length cannot be bounded without holding it, and Triton takes three times its size.
        "match": {"prefix": "/", "headers": [POST, _absent("content-length")]},
        **direct(411, "LengthRequired", "send the header content-length: a body of unknown length is not accepted"),
    }
    for path in (f"/endpoints/{route.name}/", f"/endpoints/{route.name}"):
        yield {
            "match": {"path": path, "headers": [_not(":method", {"exact": "POST"})]},
            **direct(
                405, "MethodNotAllowed", "POST to this address to score; the model server's API is below it",
                {"allow": "POST"},
            ),
        }  # fmt: skip


def _unauthenticated(route: Route) -> Iterator[dict[str, Any]]:
    if route.auth != "key":
        message = (
            "no token, or not a valid one of this endpoint's (a token ends): "
            "send the header 'Authorization: Bearer <token>'"
        )
        refusal = direct(401, "AuthenticationFailed", message, _CHALLENGE)
        yield from ({**part, **refusal} for part in jwt.refusals(route))
        return
    yield {
        # Each accepted value, negated: true when the header is given twice (Envoy joins the values with a comma) or
        # is anything else. An absent one counts as empty: without that word a negated match on it is *false*, and
        # whoever sends no key would be let in. With no accepted key this is true of every request.
        "match": {
            "prefix": "/",
            "headers": [
                {
                    **_not("authorization", {"exact": f"Bearer {k.reveal()}"}),
                    "treat_missing_header_as_empty": True,
                }
                for k in route.credentials
            ],
        },
        **direct(
            401,
            "AuthenticationFailed",
            "no key, or not one of this endpoint's: send the header 'Authorization: Bearer <key>'",
            _CHALLENGE,
        ),
    }


def _selected(route: Route, bounds: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    for placed, match, mirrors in _choices(route, bounds):
        yield from target_routes(placed, match, mirrors)
    yield from _nowhere(route)


def _choices(route: Route, bounds: Mapping[str, int]) -> Iterator[tuple[Placed, dict[str, Any], Sequence[Mirror]]]:
    """Which target a request is for, by its match, with the targets that get copies: the split, then pinned requests.

    One random number is drawn for a request and used for all, so the shares must be cumulative. A mirror takes its part
    of each share's numbers: of every target the same percentage of requests is copied.
    """
    placed = {t.name: Placed(route.name, t, bounds.get(t.cluster or "", 0)) for t in route.targets}
    unpinned = [_absent(DEPLOYMENT)]
    passed = 0
    for name, percent in route.split:
        mirrors = [(placed[copy], 100 * passed + percent * part) for copy, part in route.mirrors]
        passed += percent
        share = {} if passed == 100 else _share(passed)
        yield placed[name], {"headers": unpinned, **share}, mirrors
    for one in placed.values():
        pinned = {"name": DEPLOYMENT, "string_match": {"exact": one.target.name, "ignore_case": True}}
        yield one, {"headers": [pinned]}, ()


def _nowhere(route: Route) -> Iterator[dict[str, Any]]:
    """What is answered when no target was chosen."""
    yield {
        "match": {"prefix": "/", "headers": [{"name": DEPLOYMENT, "present_match": True}]},
        **direct_format(
            404,
            "DeploymentNotFound",
            f"endpoint '{route.name}' has no deployment '%REQ({DEPLOYMENT})%', which the header {DEPLOYMENT} asks for",
        ),
    }
    if not route.split:
        yield {
            "match": {"prefix": "/"},
            **direct(
                404,
                "NoTraffic",
                f"no deployment of endpoint '{route.name}' has traffic: set the endpoint's traffic, or name a "
                f"deployment in the header {DEPLOYMENT}",
            ),
        }


def _share(cumulative: int) -> dict[str, Any]:
    return {"runtime_fraction": {"default_value": {"numerator": 100 * cumulative, "denominator": "TEN_THOUSAND"}}}


def _absent(name: str) -> dict[str, Any]:
    return {"name": name, "present_match": True, "invert_match": True}


def _not(name: str, match: Mapping[str, str]) -> dict[str, Any]:
    return {"name": name, "string_match": dict(match), "invert_match": True}
