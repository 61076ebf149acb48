"""One RouteConfiguration for each scoring address, and the scope that selects it by the path.

Decides, in this order, what happens to a request: 404 outside ``/endpoints/``, 401, 403 for paths
that control the model server, 413, 405, then a target, by the header that pins or by the
split. Security depends on the order: nothing after the 401 is reached without a key or a token.
Must not know how the resources reach Envoy. Source: Envoy's API page "HTTP route components".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from amphitrite.dataplane.envoy.answers import sample_filter
from amphitrite.dataplane.envoy.filters import (
    cors,
    credential_uses,
    form_bodies,
    jwt,
    nested_bodies,
    queueing,
    unsized_bodies,
)
from amphitrite.dataplane.envoy.filters.local_replies import METADATA, direct, direct_format
from amphitrite.dataplane.envoy.filters.sequence_affinity import BUFFERED_BYTES
from amphitrite.dataplane.envoy.translate import grpc_routes, held_requests
from amphitrite.dataplane.envoy.translate.target_routes import (
    DEPLOYMENT,
    POST,
    RETRY_NOT_RUN,
    Mirror,
    RoutedTarget,
    target_routes,
)
from amphitrite.dataplane.table.routing_table import ADMIN_HEADER, Route, Secret

_INT64_MAX = 2**63 - 1
#: Paths by which Triton's HTTP API changes or reveals the server: model repository, shared memory,
#: trace, logging.
_REFUSED = (
    r"(?i)/endpoints/[^/]+/v2/(repository|[a-z]*sharedmemory|trace|logging"
    r"|models/[^/]+(/versions/[^/]+)?/trace)([^a-z].*)?"
)
#: As much as a connection may buffer. Without it a body that was held for its length would be kept
#: as a whole while a model works.
_RETRIED_BYTES = 1024 * 1024
_DIRECT_BODY_MAX = 64 * 1024
_CHALLENGE = {"www-authenticate": "Bearer"}


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """The most bytes of a request's body. ``unsized``: of one whose length is not announced."""

    sized: int
    unsized: int


def scope(name: str) -> dict[str, Any]:
    """The ``ScopedRouteConfiguration`` that sends ``/endpoints/<name>…``, or requests to the host
    ``name``, to the RouteConfiguration ``name``."""
    return {
        "name": name,
        "route_configuration_name": name,
        "key": {"fragments": [{"string_key": name}]},
    }


def route_configuration(
    route: Route, bounds: Mapping[str, int], bodies: BodyLimits, by_grpc: Collection[str] = ()
) -> dict[str, Any]:
    """A ``RouteConfiguration``. It holds the accepted keys as plain text.

    ``bounds``: the limit on requests in flight by cluster, for the text of a 429. ``by_grpc``: the
    clusters that serve gRPC.
    """
    routes = [*_grpc(route, bounds, by_grpc), *_refusals(route, bodies), *_targets(route, bounds)]
    for entry in routes:
        entry.setdefault("metadata", {"filter_metadata": {METADATA: {}}})
        entry["metadata"]["filter_metadata"][METADATA].setdefault("endpoint", route.name)
        # Requests count under the name of their route: see ``request_stats``.
        if entry.setdefault("name", "//").startswith("//"):
            entry["name"] = route.name + entry["name"]
    host: dict[str, Any] = {
        "name": route.name,
        "domains": ["*"],
        "routes": routes,
        "retry_policy": RETRY_NOT_RUN,
        "virtual_clusters": credential_uses.virtual_clusters(route),
    }
    # What is kept of a body for a retry. A setting of the host, since a request with a token first
    # finds another route than the one that buffers its body.
    sequences = any(target.sequences for target in route.targets)
    host["request_body_buffer_limit"] = str(BUFFERED_BYTES if sequences else _RETRIED_BYTES)
    if any(target.container for target in route.targets):
        host["request_headers_to_remove"] = [form_bodies.ORIGINAL]
    if route.cors:
        host |= cors.host_settings(route.cors)
    if route.auth != "key":
        host["typed_per_filter_config"] = {**host.get("typed_per_filter_config", {}), **jwt.other_filters()}
    if any(target.queue_wait_s for target in route.targets):
        # Not only requests with a token find another route first, but those with some bodies too.
        host["typed_per_filter_config"] = {**host.get("typed_per_filter_config", {}), **queueing.inactive()}
    if any(target.hold != "never" for target in route.targets):
        host["typed_per_filter_config"] = {**host.get("typed_per_filter_config", {}), **held_requests.inactive()}
    if route.comparison is not None:
        host["typed_per_filter_config"] = {**host.get("typed_per_filter_config", {}), **sample_filter.inactive()}
    return {
        "name": route.name,
        "virtual_hosts": [host],
        "request_headers_to_remove": ["authorization", ADMIN_HEADER, grpc_routes.ENDPOINT, grpc_routes.SCOPE],
        # The agent itself sends clusters before routes. If a cluster is missing nevertheless, the
        # answer is 503.
        "validate_clusters": False,
        "max_direct_response_body_size_bytes": _DIRECT_BODY_MAX,
    }


def _grpc(route: Route, bounds: Mapping[str, int], by_grpc: Collection[str]) -> Iterator[dict[str, Any]]:
    """As ``_refusals`` and ``_targets``, for gRPC requests. None of them gets any further."""
    yield from grpc_routes.refusals(_unauthenticated(route))
    for routed, match, mirrors, _ in _target_matches(route, bounds):
        yield from grpc_routes.target_routes(routed, match, mirrors, by_grpc)
    yield from (grpc_routes.as_grpc(item) for item in _no_target(route))


def _refusals(route: Route, bodies: BodyLimits) -> Iterator[dict[str, Any]]:
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
            "headers": [{"name": "content-length", "range_match": {"start": bodies.sized + 1, "end": _INT64_MAX}}],
        },
        **direct_format(
            413,
            "RequestTooLarge",
            f"the body has %REQ(content-length)% bytes; at most {bodies.sized} are accepted (max_body_bytes)",
        ),
    }
    yield unsized_bodies.route(
        {"prefix": "/", "headers": [POST, _absent("content-length")]},
        min(bodies.unsized, bodies.sized),
    )
    if any(not target.container for target in route.targets):
        unread = direct(400, "BadRequest", "the JSON of the body was not read")
        yield from nested_bodies.routes(route.name, POST, unread)
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
            "the request has no token, or none that is valid for this endpoint (tokens expire): "
            "send the header 'Authorization: Bearer <token>'"
        )
        refusal = direct(401, "AuthenticationFailed", message, _CHALLENGE)
        yield from ({**part, **refusal} for part in jwt.refusals(route))
        return
    yield {
        # A negated match on each accepted value. It is true when the header has another value, or
        # is given twice (Envoy joins the values with a comma). An absent header counts as empty:
        # without that field a negated match on it is *false*, and a request without a key would be
        # let in. Without an accepted key the match is true of every request.
        "match": {
            "prefix": "/",
            "headers": [
                {**_not("authorization", value), "treat_missing_header_as_empty": True}
                for value in _accepted(route.credentials)
            ],
        },
        **direct(
            401,
            "AuthenticationFailed",
            "the request has no key, or none of this endpoint's: send the header 'Authorization: Bearer <key>'",
            _CHALLENGE,
        ),
    }


def _accepted(keys: Sequence[Secret]) -> Iterator[dict[str, Any]]:
    """The values that show a key: as nearly all clients write it, then with the scheme in another
    form. That is only looked at where the first is not found."""
    texts = [key.reveal() for key in keys]
    yield from ({"exact": f"Bearer {text}"} for text in texts)
    # Quoted and not escaped: a key is blanked by its text where Envoy quotes a route.
    quoted = [rf"\Q{text}\E" for text in texts if "\\" not in text]
    if quoted:
        yield {"safe_regex": {"regex": f"{jwt.SCHEME}(?:{'|'.join(quoted)})"}}


def _targets(route: Route, bounds: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    for routed, match, mirrors, compared in _target_matches(route, bounds):
        yield from target_routes(routed, match, mirrors, compared)
    yield from _no_target(route)


def _target_matches(
    route: Route, bounds: Mapping[str, int]
) -> Iterator[tuple[RoutedTarget, dict[str, Any], Sequence[Mirror], int]]:
    """The match of each target's requests, with the targets that get mirrored requests and the
    bound of those that are compared: first the split, then pinned requests.

    One random number is drawn for a request and used for all fractions, so the shares must be
    cumulative. A mirror takes its part of each share's numbers: the same percentage of every
    target's requests is mirrored. So does a comparison.
    """
    routed = {t.name: RoutedTarget(route.name, t, bounds.get(t.cluster or "", 0)) for t in route.targets}
    unpinned = [_absent(DEPLOYMENT)]
    cumulative = 0
    for name, percent in route.split:
        mirrors = [(routed[copy], 100 * cumulative + percent * part) for copy, part in route.mirrors]
        part = _compared_part(route, name)
        compared = 100 * cumulative + percent * part if part else 0
        cumulative += percent
        share = {} if cumulative == 100 else _share(cumulative)
        yield routed[name], {"headers": unpinned, **share}, mirrors, compared
    for item in routed.values():
        pinned = {"name": DEPLOYMENT, "string_match": {"exact": item.target.name, "ignore_case": True}}
        yield item, {"headers": [pinned]}, (), 100 * _compared_part(route, item.target.name)


def _compared_part(route: Route, target: str) -> int:
    """The percentage of the target's requests whose answers are compared."""
    comparison = route.comparison
    return comparison.share if comparison is not None and comparison.base == target else 0


def _no_target(route: Route) -> Iterator[dict[str, Any]]:
    """The responses when no target was chosen."""
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


def _not(name: str, match: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "string_match": dict(match), "invert_match": True}
