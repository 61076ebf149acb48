"""The decision: from what is wanted and what is there to what to do now.

Decides everything the reconciler does in one pass, as a value. It compares facts, never events, so a pass that was cut
off anywhere is made good by the next one. Must not know a clock, a database, a process or a proxy.

The rules, in the order of a rollout:

* a slot without a living instance is started, at once or after its back-off;
* an instance that is not ready by its load deadline is stopped and counts as failed;
* a workload is routed when all its instances are ready (``supply``);
* a traffic map takes effect when all it names can be routed (``routing``);
* an instance that once served is stopped only when the *published* table does not name it and every live agent
  says that it has drained that table; no agent, no stop;
* a deleted resource goes when nothing of it is there any more;
* an endpoint on a compute of which nothing is known now stays as it is published, but for its keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from amphitrite.controlplane.core.lifecycle import deployment_status, endpoint_status, out_of_sight
from amphitrite.controlplane.core.memory import Memory
from amphitrite.controlplane.core.observed import AgentReport, Instance
from amphitrite.controlplane.core.resources import Deployment, Endpoint
from amphitrite.controlplane.core.routing import routing_table, with_unchanged
from amphitrite.controlplane.core.status import Ref, Status, World
from amphitrite.controlplane.core.supply import Start, Supply, supply, timeless
from amphitrite.dataplane.routing import Cluster, Route, RoutingTable, TokenIssuer
from amphitrite.schemas.names import key

#: What a stopped instance gets to end by itself; it is drained already.
GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class Stop:
    """End an instance; ``why`` is for the log."""

    instance_id: str
    grace_s: float
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything one pass does: ``start``, ``stop``, ``forget`` in the runtime, then publish ``table`` (if its content
    is new), record ``statuses``, ``remove`` rows; look again at ``wake_at`` at the latest (None: when woken)."""

    start: tuple[Start, ...]
    stop: tuple[Stop, ...]
    forget: tuple[str, ...]
    table: RoutingTable
    statuses: tuple[tuple[Ref, Status], ...]
    remove: tuple[Ref, ...]
    wake_at: float | None


def plan(
    world: World,
    instances: Sequence[Instance],
    agents: Sequence[AgentReport],
    now: float,
    unknown: frozenset[str] = frozenset(),
    issuers: Sequence[TokenIssuer] = (),
    memory: Memory | None = None,
) -> Plan:
    """``agents``: the live ones only. ``now``: seconds since the epoch. ``unknown``: computes that do not answer, so
    that ``instances`` says nothing of what runs there. ``issuers``: whose tokens count now. ``memory``: of the passes
    before, so that this one costs what has changed; the plan is the same without it."""
    memory = memory or Memory()
    seen, hidden = _by_sight(world, unknown)
    visible = [i for i in instances if i.workload.endpoint not in hidden]
    decided = _plan(seen, visible, agents, now, world.table, hidden, issuers, memory)
    memory.turn()
    blind = [(d, out_of_sight(d)) for d in world.deployments if d.endpoint in hidden]
    statuses = tuple((Ref(d.endpoint, d.name), status) for d, status in blind if status is not None)
    return replace(decided, statuses=(*decided.statuses, *statuses))


def _by_sight(world: World, unknown: frozenset[str]) -> tuple[World, dict[str, Endpoint]]:
    """The world without the endpoints that have something on an unknown compute, and those, by lower-case name."""
    names = {d.endpoint for d in world.deployments if d.workload.compute in unknown}
    hidden = {key(e.name): e for e in world.endpoints if key(e.name) in names}
    if not hidden:
        return world, hidden
    endpoints = tuple(e for e in world.endpoints if key(e.name) not in hidden)
    deployments = tuple(d for d in world.deployments if d.endpoint not in hidden)
    return replace(world, endpoints=endpoints, deployments=deployments), hidden


def _plan(
    world: World,
    instances: Sequence[Instance],
    agents: Sequence[AgentReport],
    now: float,
    published: RoutingTable,
    hidden: Mapping[str, Endpoint],
    issuers: Sequence[TokenIssuer],
    memory: Memory,
) -> Plan:
    supplies = _supplies(world, instances, now, memory)
    by_endpoint: dict[str, list[Supply]] = {}
    for one in supplies:
        by_endpoint.setdefault(one.deployment.endpoint, []).append(one)
    endpoints = [e for e in world.endpoints if not e.deleting]
    table = with_unchanged(routing_table(endpoints, by_endpoint, published, issuers, memory), published, hidden)

    kept: frozenset[str] = frozenset().union(*(s.kept for s in supplies))
    overdue: frozenset[str] = frozenset().union(*(s.overdue for s in supplies))
    stop = tuple(_stops(world, instances, agents, kept, overdue))
    forget = tuple(i.id for i in instances if i.phase == "exited" and i.id not in kept)

    view = _View(world.table, table, agents)
    statuses: list[tuple[Ref, Status]] = []
    for one in supplies:
        ref = Ref(one.deployment.endpoint, one.deployment.name)
        in_force, rejected = view.in_force(ref.endpoint), view.rejected
        told = partial(deployment_status, one, in_force=in_force, rejected=rejected)
        statuses.append((ref, memory.of(ref, (one, in_force, rejected), told)))
    routes = {key(route.name): route for route in table.routes}
    for endpoint in endpoints:
        name = key(endpoint.name)
        ref, behind = Ref(name), tuple(by_endpoint.get(name, ()))
        route, in_force, rejected = routes[name], view.in_force(name), view.rejected
        told = partial(endpoint_status, endpoint, route, behind, in_force=in_force, rejected=rejected)
        statuses.append((ref, memory.of(ref, (endpoint, route, behind, in_force, rejected), told)))
    remove, leaving = _leaving(world, instances, view)
    return Plan(
        start=tuple(start for one in supplies for start in one.starts),
        stop=stop,
        forget=forget,
        table=table,
        statuses=(*statuses, *leaving),
        remove=remove,
        wake_at=min((s.look_at for s in supplies if s.look_at is not None), default=None),
    )


def _supplies(world: World, instances: Sequence[Instance], now: float, memory: Memory) -> list[Supply]:
    """For each deployment that stays: not being deleted, and its endpoint neither."""
    staying = {key(e.name) for e in world.endpoints if not e.deleting}
    routed = {
        (key(route.name), target.name): target.cluster for route in world.table.routes for target in route.targets
    }
    by_deployment: dict[tuple[str, str], list[Instance]] = {}
    for instance in instances:
        place = (instance.workload.endpoint, instance.workload.deployment)
        by_deployment.setdefault(place, []).append(instance)
    supplies = []
    for deployment in world.deployments:
        if deployment.deleting or deployment.endpoint not in staying:
            continue
        place = (deployment.endpoint, deployment.name)
        mine, before = tuple(by_deployment.get(place, ())), routed.get(place)
        made = partial(supply, deployment, mine, before, now)
        supplies.append(memory.of(("supply", place), (deployment, mine, before), made) if timeless(mine) else made())
    return supplies


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
            stops.append(Stop(instance.id, GRACE_S, "it takes too long to load its models"))
        elif instance.ready_at is None or (instance.address not in addressed and drained):
            stops.append(Stop(instance.id, GRACE_S, "nothing wants it any more"))
    return stops


class _View:
    """What the proxies have of the table that this pass makes."""

    def __init__(self, published: RoutingTable, wanted: RoutingTable, agents: Sequence[AgentReport]) -> None:
        version = published.version
        self._published, self._wanted = _content(published), _content(wanted)
        self._acknowledged = bool(agents) and all(a.acknowledged_version >= version for a in agents)
        self._drained = bool(agents) and all(a.drained_version >= version for a in agents)
        refusals = [a.error for a in agents if a.rejected_version == version]
        self.rejected = (refusals[0] or "no reason given") if refusals else None

    def in_force(self, endpoint: str) -> bool:
        """This endpoint's part of the wanted table is published and acknowledged."""
        return self._acknowledged and self._published.get(endpoint) == self._wanted.get(endpoint)

    def gone(self, endpoint: str, deployment: str | None) -> bool:
        """The published table names it no more, and nothing is in flight on it."""
        if endpoint not in self._published:
            return self._drained
        route, _ = self._published[endpoint]
        named = deployment is None or any(target.name == deployment for target in route.targets)
        return self._drained and not named


def _content(table: RoutingTable) -> dict[str, tuple[Route, tuple[Cluster, ...]]]:
    """By lower-case endpoint name: its route and the clusters that the route names."""
    clusters = {cluster.name: cluster for cluster in table.clusters}
    return {
        key(route.name): (route, tuple(clusters[t.cluster] for t in route.targets if t.cluster is not None))
        for route in table.routes
    }


def _leaving(
    world: World, instances: Sequence[Instance], view: _View
) -> tuple[tuple[Ref, ...], list[tuple[Ref, Status]]]:
    """Resources that are being deleted: the rows that may go now, and the statuses of those that may not."""
    deleting = {key(e.name): e for e in world.endpoints if e.deleting}
    remove: list[Ref] = []
    statuses: list[tuple[Ref, Status]] = []
    busy: set[str] = set()
    for deployment in world.deployments:
        if not deployment.deleting and deployment.endpoint not in deleting:
            continue
        ref = Ref(deployment.endpoint, deployment.name)
        there = [i.phase for i in instances if _belongs(i, deployment) and i.phase != "exited"]
        if not there and view.gone(deployment.endpoint, deployment.name):
            remove.append(ref)
            continue
        busy.add(deployment.endpoint)
        draining = not there or any(phase != "stopping" for phase in there)
        phase, message = (
            ("Draining", "waiting until no request is in flight")
            if draining
            else ("Stopping", f"{len(there)} instances are ending")
        )
        statuses.append((ref, Status("Deleting", deployment.observed_generation, phase, message)))
    for name, endpoint in deleting.items():
        if name not in busy and view.gone(name, None):
            remove.append(Ref(name))
        else:
            status = Status("Deleting", endpoint.observed_generation, "Draining", "its deployments are ending")
            statuses.append((Ref(name), status))
    return tuple(remove), statuses
