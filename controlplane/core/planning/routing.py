"""The routing table, from the endpoints and what serves them.

Decides when a traffic map takes effect and what the limits of each target are. Must not know Envoy,
nor how instances start. ``amphitrite.dataplane.envoy`` translates the table for Envoy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from amphitrite.controlplane.core.desired.containers import Container
from amphitrite.controlplane.core.desired.resources import Endpoint, WorkloadSpec
from amphitrite.controlplane.core.planning.memo import Memory
from amphitrite.controlplane.core.planning.supply import Supply
from amphitrite.dataplane.table.routing_table import (
    Cluster,
    Comparison,
    HealthCheck,
    Route,
    RoutingTable,
    Target,
    TokenIssuer,
    comparable,
)
from amphitrite.schemas.names import key

Shares = tuple[tuple[str, int], ...]

#: The readiness path of this server's own Triton.
TRITON_READY_PATH = HealthCheck().path
#: Requests in flight on instances that are no longer routed get at least this many seconds, because
#: a streamed answer may take longer than the deployment's timeout. Without such requests nothing
#: waits.
DRAIN_AT_LEAST_S = 60.0


def routing_table(
    endpoints: Iterable[Endpoint],
    supplies: Mapping[str, Sequence[Supply]],
    previous: RoutingTable,
    issuers: Iterable[TokenIssuer] = (),
    memory: Memory | None = None,
) -> RoutingTable:
    """The table for these endpoints, with the version of ``previous``.

    ``endpoints``: none that is being deleted. ``supplies``: by lower-case endpoint name, for each
    deployment that is not being deleted. ``issuers``: the issuers of valid tokens. ``memory``: of
    the previous passes.
    """
    memory = memory or Memory()
    before = {key(route.name): route for route in previous.routes}
    routes: list[Route] = []
    clusters: dict[str, Cluster] = {}
    for endpoint in endpoints:
        name = key(endpoint.name)
        mine = tuple(sorted(supplies.get(name, ()), key=lambda s: s.deployment.name))
        sources = endpoint, mine, before.get(name)
        route, behind = memory.reuse(("route", name), sources, partial(_route_and_clusters, *sources))
        routes.append(route)
        clusters |= behind
    return RoutingTable(
        version=previous.version,
        routes=tuple(sorted(routes, key=lambda r: r.name)),
        clusters=tuple(clusters[name] for name in sorted(clusters)),
        max_body_bytes=previous.max_body_bytes,
        max_unsized_body_bytes=previous.max_unsized_body_bytes,
        issuers=tuple(sorted(issuers, key=lambda i: i.auth)),
    )


def with_published_routes(
    table: RoutingTable, previous: RoutingTable, endpoints: Mapping[str, Endpoint]
) -> RoutingTable:
    """``table`` with the routes of ``endpoints`` (by lower-case name) and their clusters from
    ``previous``.

    Only authentication follows the endpoint: a withdrawn key must stop working, whatever else is
    unknown.
    """
    kept = [
        replace(route, **_authentication(endpoints[key(route.name)]))
        for route in previous.routes
        if key(route.name) in endpoints
    ]
    if not kept:
        return table
    cluster_names = {target.cluster for route in kept for target in route.targets}
    clusters = {c.name: c for c in previous.clusters if c.name in cluster_names} | {c.name: c for c in table.clusters}
    return replace(
        table,
        routes=tuple(sorted((*table.routes, *kept), key=lambda r: r.name)),
        clusters=tuple(clusters[name] for name in sorted(clusters)),
    )


def _route_and_clusters(
    endpoint: Endpoint, supplies: Sequence[Supply], before: Route | None
) -> tuple[Route, Mapping[str, Cluster]]:
    """The route of an endpoint, and its clusters by name."""
    clusters = {one.routed.name: _cluster(one, one.routed) for one in supplies if one.routed is not None}
    return _route(endpoint, supplies, before), clusters


def _route(endpoint: Endpoint, supplies: Sequence[Supply], before: Route | None) -> Route:
    targets = tuple(_target(s) for s in supplies)
    # Who names a deployment that is paused or asleep in the traffic wants just that.
    ready = {t.name for t in targets if t.cluster is not None or t.paused or t.hold == "now"}
    known = {t.name for t in targets}
    split, mirrors = endpoint.traffic, endpoint.mirror_traffic
    if not {name for name, _ in split} <= ready:
        split = _former_shares(before.split if before else (), known, whole=True)
    if not {name for name, _ in mirrors} <= ready:
        mirrors = _former_shares(before.mirrors if before else (), known, whole=False)
    return Route(
        endpoint.name,
        targets=targets,
        split=split,
        mirrors=mirrors,
        cors=endpoint.cors,
        comparison=_comparison(endpoint, targets),
        **_authentication(endpoint),
    )


def _comparison(endpoint: Endpoint, targets: Sequence[Target]) -> Comparison | None:
    """What the endpoint's rollout compares, once both deployments can answer."""
    wanted = endpoint.comparison
    able = {t.name for t in targets if t.cluster is not None and comparable(t)}
    return wanted if wanted is not None and {wanted.base, wanted.candidate} <= able else None


def _authentication(endpoint: Endpoint) -> dict[str, Any]:
    """The fields of a route that say whom it lets in. With tokens an endpoint keeps its keys, but
    does not accept them."""
    mode = endpoint.auth_mode
    return {
        "auth": mode,
        "credentials": endpoint.keys if mode == "key" else (),
        "binding": endpoint.token_binding if mode == "aml_token" else "",
    }


def is_effective(endpoint: Endpoint, route: Route) -> bool:
    """Whether ``route`` carries the traffic that the endpoint asks for."""
    return (route.split, route.mirrors) == (endpoint.traffic, endpoint.mirror_traffic)


def _former_shares(shares: Shares, known: set[str], *, whole: bool) -> Shares:
    """The previous shares whose targets still exist.

    ``whole``: if a target is gone the result is empty, because a split must sum to 100.
    """
    kept = tuple(share for share in shares if share[0] in known)
    return () if whole and len(kept) != len(shares) else kept


def _target(supply: Supply) -> Target:
    deployment, workload = supply.deployment, supply.routed
    score_path, reason = scoring_path(workload or deployment.workload, deployment.scoring_model)
    return Target(
        name=deployment.name,
        cluster=workload.name if workload else None,
        timeout_s=deployment.request_timeout_ms / 1000,
        score_path=score_path,
        score_reason=reason,
        sequences=deployment.sequences,
        number_ids=deployment.number_ids,
        per_instance=deployment.max_concurrent_requests_per_instance,
        container=_is_users_own((workload or deployment.workload).container),
        retry_lost=deployment.retry == "lost-requests" and not deployment.sequences,
        sample_every_s=float(deployment.scale_settings.polling_interval) if deployment.scale_settings else 0.0,
        queue_wait_s=min(deployment.max_queue_wait_ms, deployment.request_timeout_ms) / 1000,
        hold=supply.hold,
        paused=deployment.pause is not None,
    )


def _is_users_own(container: Container | None) -> bool:
    """Whether the image's own command answers, and not a Triton that we start."""
    return container is not None and container.repository is None


def scoring_path(workload: WorkloadSpec, chosen: str | None) -> tuple[str | None, str]:
    """The path for a POST to the scoring URI, or None and the reason.

    It is the only model, or the model that the deployment names. In a custom container it is the
    scoring route, unless that is ``/``, which Triton does not answer.
    """
    names, container = workload.model.model_names, workload.container
    if container is not None and (container.scoring_path != "/" or not names):
        return container.scoring_path, ""
    if chosen is not None and chosen in names:
        return f"/v2/models/{chosen}/infer", ""
    if chosen is not None:
        return None, f"the deployment chooses the scoring model '{chosen}', but it serves {', '.join(names)}"
    if len(names) == 1:
        return f"/v2/models/{names[0]}/infer", ""
    return None, (
        f"the deployment serves {len(names)} models ({', '.join(names)}): "
        "POST to v2/models/<model>/infer below this address, or choose one with the deployment's property "
        "amphitrite.scoring_model"
    )


def _cluster(supply: Supply, workload: WorkloadSpec) -> Cluster:
    deployment, probe = supply.deployment, supply.deployment.readiness_probe
    return Cluster(
        name=workload.name,
        addresses=tuple(sorted(i.address for i in supply.serving if i.address is not None)),
        max_requests=supply.routed_count * deployment.max_concurrent_requests_per_instance,
        drain_timeout_s=max(DRAIN_AT_LEAST_S, deployment.request_timeout_ms / 1000 + 1),
        health_check=HealthCheck(
            path=TRITON_READY_PATH if workload.container is None else workload.container.readiness_path,
            interval_s=float(probe.period),
            timeout_s=float(probe.timeout),
            healthy_threshold=probe.success_threshold,
            unhealthy_threshold=probe.failure_threshold,
        ),
        sequences=deployment.sequences,
        queue=deployment.max_queue_wait_ms > 0,
    )
