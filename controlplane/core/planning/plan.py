"""The plan: what to do now, from what users want and what runs.

Decides everything that the reconciler does in one pass, as a value. It compares facts, never
events, so the next pass completes a pass that was interrupted anywhere. Must not know a clock, a
database, a process or a proxy.

The rules, in the order of a rollout:

* A slot without a living instance gets one, at once or after its back-off.
* An instance that is not ready by its load deadline is stopped and counts as failed.
* A workload is routed when all its instances are ready (``supply``).
* A traffic map takes effect when all deployments that it names can be routed (``routing``).
* An instance that has served is stopped only when the *published* table does not name it and every
  live agent reports that it has drained that table. Without agents nothing is stopped.
* The row of a deleted resource is removed when no instance of it is left.
* An endpoint on a compute that does not answer keeps its published routes; only its keys change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from amphitrite.controlplane.core.desired.resources import Deployment, Endpoint
from amphitrite.controlplane.core.observed.observations import AgentReport, Instance
from amphitrite.controlplane.core.observed.status import Ref, Status, World
from amphitrite.controlplane.core.planning.lifecycle import deployment_status, endpoint_status, unreachable_status
from amphitrite.controlplane.core.planning.memo import Memory
from amphitrite.controlplane.core.planning.routing import routing_table, with_published_routes
from amphitrite.controlplane.core.planning.supply import Start, Supply, is_time_independent, supply
from amphitrite.dataplane.table.routing_table import Cluster, Route, RoutingTable, TokenIssuer
from amphitrite.schemas.names import key

#: Seconds that a stopped instance has to exit. It has been drained before.
GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class Stop:
    """End an instance. ``why`` is for the log."""

    instance_id: str
    grace_s: float
    why: str


@dataclass(frozen=True, slots=True)
class Draft:
    """The first part of a pass: publish ``table``.

    The rest of the pass follows from the same facts (``complete``), so clients of an endpoint whose
    traffic has changed need not wait for it.

    ``world`` and ``instances``: without computes that do not answer. ``supplies``: by lower-case
    name, for each endpoint that is not being deleted. ``unreachable``: deployments whose compute
    does not answer.
    """

    table: RoutingTable
    world: World
    instances: tuple[Instance, ...]
    agents: tuple[AgentReport, ...]
    supplies: Mapping[str, tuple[Supply, ...]]
    unreachable: tuple[Deployment, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that one pass does.

    It publishes ``table`` if its content is new; starts, stops and forgets instances in the
    runtime; records ``statuses``; and removes rows. The next pass runs at ``wake_at`` (seconds
    since the epoch) at the latest, or when woken if that is None.
    """

    start: tuple[Start, ...]
    stop: tuple[Stop, ...]
    forget: tuple[str, ...]
    table: RoutingTable
    statuses: tuple[tuple[Ref, Status], ...]
    remove: tuple[Ref, ...]
    wake_at: float | None


def draft(
    world: World,
    instances: Sequence[Instance],
    agents: Sequence[AgentReport],
    now: float,
    unknown: frozenset[str] = frozenset(),
    issuers: Sequence[TokenIssuer] = (),
    memory: Memory | None = None,
) -> Draft:
    """The table to publish, and what ``complete`` needs.

    ``agents``: the live ones only. ``now``: seconds since the epoch. ``unknown``: computes that do
    not answer, so ``instances`` lacks what runs there. ``issuers``: the issuers of valid tokens.
    ``memory``: of the previous passes, which only saves work: the plan is the same without it.
    """
    memory = memory or Memory()
    reachable, unreachable = _reachable(world, unknown)
    visible = tuple(i for i in instances if i.workload.endpoint not in unreachable)
    remaining = [e for e in reachable.endpoints if not e.deleting]
    supplies = _supplies_by_endpoint(reachable, remaining, visible, now, memory)
    table = with_published_routes(
        routing_table(remaining, supplies, world.table, issuers, memory), world.table, unreachable
    )
    out_of_reach = tuple(d for d in world.deployments if d.endpoint in unreachable) if unreachable else ()
    return Draft(table, reachable, visible, tuple(agents), supplies, out_of_reach)


def complete(draft: Draft, memory: Memory | None = None) -> Plan:
    """The plan of a draft, with the same ``memory``."""
    memory = memory or Memory()
    supplies = [one for of_endpoint in draft.supplies.values() for one in of_endpoint]
    kept: frozenset[str] = frozenset().union(*(s.kept for s in supplies))
    overdue: frozenset[str] = frozenset().union(*(s.overdue for s in supplies))
    view = _ProxyView(draft.world.table, draft.table, draft.agents)
    remove, deleting = _deletions(draft.world, draft.instances, view)
    decided = Plan(
        start=tuple(start for one in supplies for start in one.starts),
        stop=tuple(_stops(draft.world, draft.instances, draft.agents, kept, overdue)),
        forget=tuple(i.id for i in draft.instances if i.phase == "exited" and i.id not in kept),
        table=draft.table,
        statuses=(*_statuses(draft, supplies, view, memory), *deleting, *_unreachable_statuses(draft.unreachable)),
        remove=remove,
        wake_at=min((s.wake_at for s in supplies if s.wake_at is not None), default=None),
    )
    memory.end_pass()
    return decided


def _reachable(world: World, unknown: frozenset[str]) -> tuple[World, dict[str, Endpoint]]:
    """The world without the endpoints that have a deployment on an unknown compute, and those
    endpoints by lower-case name."""
    names = {d.endpoint for d in world.deployments if d.workload.compute in unknown} if unknown else set()
    unreachable = {key(e.name): e for e in world.endpoints if key(e.name) in names} if names else {}
    if not unreachable:
        return world, unreachable
    endpoints = tuple(e for e in world.endpoints if key(e.name) not in unreachable)
    deployments = tuple(d for d in world.deployments if d.endpoint not in unreachable)
    return replace(world, endpoints=endpoints, deployments=deployments), unreachable


def _supplies_by_endpoint(
    world: World, staying: Sequence[Endpoint], instances: Sequence[Instance], now: float, memory: Memory
) -> dict[str, tuple[Supply, ...]]:
    """The supplies of each endpoint in ``staying``, by lower-case name."""
    deployments: dict[str, list[Deployment]] = {}
    for deployment in world.deployments:
        if not deployment.deleting:
            deployments.setdefault(deployment.endpoint, []).append(deployment)
    running: dict[str, list[Instance]] = {}
    for instance in instances:
        running.setdefault(instance.workload.endpoint, []).append(instance)
    routes = {key(route.name): route for route in world.table.routes}
    supplies = {}
    for endpoint in staying:
        name = key(endpoint.name)
        # If instances wait for a time, the time is an input too.
        mine = tuple(running.get(name, ()))
        sources = tuple(deployments.get(name, ())), mine, routes.get(name), None if is_time_independent(mine) else now
        supplies[name] = memory.reuse(("supplies", name), sources, partial(_supplies, *sources[:3], now))
    return supplies


def _supplies(
    deployments: Sequence[Deployment], instances: Sequence[Instance], before: Route | None, now: float
) -> tuple[Supply, ...]:
    """The supplies of one endpoint's deployments. ``before``: its route in the published table."""
    published = {target.name: target for target in before.targets} if before is not None else {}
    by_deployment: dict[str, list[Instance]] = {}
    for instance in instances:
        by_deployment.setdefault(instance.workload.deployment, []).append(instance)
    return tuple(supply(d, by_deployment.get(d.name, ()), published.get(d.name), now) for d in deployments)


def _statuses(draft: Draft, supplies: Sequence[Supply], view: _ProxyView, memory: Memory) -> list[tuple[Ref, Status]]:
    """The statuses of what is not being deleted."""
    statuses: list[tuple[Ref, Status]] = []
    for one in supplies:
        ref = Ref(one.deployment.endpoint, one.deployment.name)
        in_force, rejected = view.in_force(ref.endpoint), view.rejected
        make = partial(deployment_status, one, in_force=in_force, rejected=rejected)
        statuses.append((ref, memory.reuse(ref, (one, in_force, rejected), make)))
    routes = {key(route.name): route for route in draft.table.routes}
    for endpoint in draft.world.endpoints:
        if endpoint.deleting:
            continue
        name = key(endpoint.name)
        ref, mine = Ref(name), draft.supplies[name]
        route, in_force, rejected = routes[name], view.in_force(name), view.rejected
        make = partial(endpoint_status, endpoint, route, mine, in_force=in_force, rejected=rejected)
        statuses.append((ref, memory.reuse(ref, (endpoint, route, mine, in_force, rejected), make)))
    return statuses


def _unreachable_statuses(unreachable: Sequence[Deployment]) -> list[tuple[Ref, Status]]:
    statuses = [(d, unreachable_status(d)) for d in unreachable]
    return [(Ref(d.endpoint, d.name), status) for d, status in statuses if status is not None]


def _belongs(instance: Instance, deployment: Deployment) -> bool:
    return (instance.workload.endpoint, instance.workload.deployment) == (
        deployment.endpoint,
        deployment.name,
    )


def _stops(
    world: World,
    instances: Sequence[Instance],
    agents: Sequence[AgentReport],
    kept: frozenset[str],
    overdue: frozenset[str],
) -> list[Stop]:
    addressed = {address for cluster in world.table.clusters for address in cluster.addresses}
    drained = bool(agents) and all(a.drained_version >= world.table.version for a in agents)
    stops = []
    for instance in instances:
        if instance.phase in ("exited", "stopping") or instance.id in kept:
            continue
        if not instance.live:
            stops.append(Stop(instance.id, 0.0, "it does not answer its liveness probe"))
        elif instance.id in overdue:
            stops.append(Stop(instance.id, GRACE_S, "it did not load its models in time"))
        elif instance.ready_at is None or (instance.address not in addressed and drained):
            stops.append(Stop(instance.id, GRACE_S, "it is no longer needed"))
    return stops


class _ProxyView:
    """What the proxies have of the table that this pass makes."""

    def __init__(self, published: RoutingTable, wanted: RoutingTable, agents: Sequence[AgentReport]) -> None:
        version = published.version
        self._published, self._wanted = _content(published), _content(wanted)
        self._acknowledged = bool(agents) and all(a.acknowledged_version >= version for a in agents)
        self._drained = bool(agents) and all(a.drained_version >= version for a in agents)
        refusals = [a.error for a in agents if a.rejected_version == version]
        self.rejected = (refusals[0] or "no reason given") if refusals else None

    def in_force(self, endpoint: str) -> bool:
        """Whether this endpoint's part of the wanted table is published and acknowledged."""
        return self._acknowledged and self._published.get(endpoint) == self._wanted.get(endpoint)

    def gone(self, endpoint: str, deployment: str | None) -> bool:
        """Whether the published table no longer names it and no request is in flight on it."""
        if endpoint not in self._published:
            return self._drained
        route, _ = self._published[endpoint]
        named = deployment is None or any(target.name == deployment for target in route.targets)
        return self._drained and not named


def _content(table: RoutingTable) -> dict[str, tuple[Route, tuple[Cluster, ...]]]:
    """By lower-case endpoint name: its route, and the clusters that the route names."""
    clusters = {cluster.name: cluster for cluster in table.clusters}
    return {
        key(route.name): (route, tuple(clusters[t.cluster] for t in route.targets if t.cluster is not None))
        for route in table.routes
    }


def _deletions(
    world: World, instances: Sequence[Instance], view: _ProxyView
) -> tuple[tuple[Ref, ...], list[tuple[Ref, Status]]]:
    """Resources that are being deleted: the rows to remove now, and the statuses of the others."""
    deleting = {key(e.name): e for e in world.endpoints if e.deleting}
    remove: list[Ref] = []
    statuses: list[tuple[Ref, Status]] = []
    busy: set[str] = set()
    for deployment in world.deployments:
        if not deployment.deleting and deployment.endpoint not in deleting:
            continue
        ref = Ref(deployment.endpoint, deployment.name)
        phases = [i.phase for i in instances if _belongs(i, deployment) and i.phase != "exited"]
        if not phases and view.gone(deployment.endpoint, deployment.name):
            remove.append(ref)
            continue
        busy.add(deployment.endpoint)
        draining = not phases or any(phase != "stopping" for phase in phases)
        phase, message = (
            ("Draining", "waiting for requests in flight to finish")
            if draining
            else ("Stopping", f"stopping {len(phases)} instance{'s' if len(phases) != 1 else ''}")
        )
        statuses.append((ref, Status("Deleting", deployment.observed_generation, phase, message)))
    for name, endpoint in deleting.items():
        if name not in busy and view.gone(name, None):
            remove.append(Ref(name))
        else:
            status = Status(
                "Deleting", endpoint.observed_generation, "Draining", "waiting for its deployments to be deleted"
            )
            statuses.append((Ref(name), status))
    return tuple(remove), statuses
