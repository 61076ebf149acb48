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

from amphitrite.controlplane.core.desired.resources import Deployment, Endpoint
from amphitrite.controlplane.core.observed.observations import AgentReport, Instance
from amphitrite.controlplane.core.observed.status import Ref, Status, World
from amphitrite.controlplane.core.planning.lifecycle import deployment_status, endpoint_status, out_of_sight
from amphitrite.controlplane.core.planning.memo import Memory
from amphitrite.controlplane.core.planning.routing import routing_table, with_unchanged
from amphitrite.controlplane.core.planning.supply import Start, Supply, supply, timeless
from amphitrite.dataplane.table.routing_table import Cluster, Route, RoutingTable, TokenIssuer
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
class Draft:
    """What a pass does first: publish ``table``. Whatever else it does follows of the same facts (``complete``), and
    clients of an endpoint whose traffic has changed need not wait for it.

    ``world``, ``instances``: those of computes that answer. ``behind``: by lower-case name of an endpoint that stays,
    what its deployments have. ``hidden``: deployments whose compute does not answer."""

    table: RoutingTable
    world: World
    instances: tuple[Instance, ...]
    agents: tuple[AgentReport, ...]
    behind: Mapping[str, tuple[Supply, ...]]
    hidden: tuple[Deployment, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything one pass does: publish ``table`` (if its content is new), ``start``, ``stop``, ``forget`` in the
    runtime, record ``statuses``, ``remove`` rows; look again at ``wake_at`` at the latest (None: when woken)."""

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
    """``agents``: the live ones only. ``now``: seconds since the epoch. ``unknown``: computes that do not answer, so
    that ``instances`` says nothing of what runs there. ``issuers``: whose tokens count now. ``memory``: of the passes
    before, so that this one costs what has changed; the plan is the same without it."""
    memory = memory or Memory()
    seen, hidden = _by_sight(world, unknown)
    visible = tuple(i for i in instances if i.workload.endpoint not in hidden)
    staying = [e for e in seen.endpoints if not e.deleting]
    behind = _behind(seen, staying, visible, now, memory)
    table = with_unchanged(routing_table(staying, behind, world.table, issuers, memory), world.table, hidden)
    blind = tuple(d for d in world.deployments if d.endpoint in hidden) if hidden else ()
    return Draft(table, seen, visible, tuple(agents), behind, blind)


def complete(draft: Draft, memory: Memory | None = None) -> Plan:
    """The plan of a draft, ``memory`` being the same."""
    memory = memory or Memory()
    supplies = [one for behind in draft.behind.values() for one in behind]
    kept: frozenset[str] = frozenset().union(*(s.kept for s in supplies))
    overdue: frozenset[str] = frozenset().union(*(s.overdue for s in supplies))
    view = _View(draft.world.table, draft.table, draft.agents)
    remove, leaving = _leaving(draft.world, draft.instances, view)
    decided = Plan(
        start=tuple(start for one in supplies for start in one.starts),
        stop=tuple(_stops(draft.world, draft.instances, draft.agents, kept, overdue)),
        forget=tuple(i.id for i in draft.instances if i.phase == "exited" and i.id not in kept),
        table=draft.table,
        statuses=(*_staying(draft, supplies, view, memory), *leaving, *_out_of_sight(draft.hidden)),
        remove=remove,
        wake_at=min((s.look_at for s in supplies if s.look_at is not None), default=None),
    )
    memory.turn()
    return decided


def _by_sight(world: World, unknown: frozenset[str]) -> tuple[World, dict[str, Endpoint]]:
    """The world without the endpoints that have something on an unknown compute, and those, by lower-case name."""
    names = {d.endpoint for d in world.deployments if d.workload.compute in unknown} if unknown else set()
    hidden = {key(e.name): e for e in world.endpoints if key(e.name) in names} if names else {}
    if not hidden:
        return world, hidden
    endpoints = tuple(e for e in world.endpoints if key(e.name) not in hidden)
    deployments = tuple(d for d in world.deployments if d.endpoint not in hidden)
    return replace(world, endpoints=endpoints, deployments=deployments), hidden


def _behind(
    world: World, staying: Sequence[Endpoint], instances: Sequence[Instance], now: float, memory: Memory
) -> dict[str, tuple[Supply, ...]]:
    """What is behind each endpoint that stays, of its deployments that stay."""
    deployments: dict[str, list[Deployment]] = {}
    for deployment in world.deployments:
        if not deployment.deleting:
            deployments.setdefault(deployment.endpoint, []).append(deployment)
    there: dict[str, list[Instance]] = {}
    for instance in instances:
        there.setdefault(instance.workload.endpoint, []).append(instance)
    routes = {key(route.name): route for route in world.table.routes}
    behind = {}
    for endpoint in staying:
        name = key(endpoint.name)
        # Of what waits for a time the time is a source too.
        mine = tuple(there.get(name, ()))
        sources = tuple(deployments.get(name, ())), mine, routes.get(name), None if timeless(mine) else now
        behind[name] = memory.of(("behind", name), sources, partial(_supplies, *sources[:3], now))
    return behind


def _supplies(
    deployments: Sequence[Deployment], instances: Sequence[Instance], before: Route | None, now: float
) -> tuple[Supply, ...]:
    """Of each of one endpoint's deployments; ``before``: its route in the table of the pass before."""
    routed = {target.name: target.cluster for target in before.targets} if before is not None else {}
    by_deployment: dict[str, list[Instance]] = {}
    for instance in instances:
        by_deployment.setdefault(instance.workload.deployment, []).append(instance)
    return tuple(supply(d, by_deployment.get(d.name, ()), routed.get(d.name), now) for d in deployments)


def _staying(draft: Draft, supplies: Sequence[Supply], view: _View, memory: Memory) -> list[tuple[Ref, Status]]:
    """The statuses of what is not being deleted."""
    statuses: list[tuple[Ref, Status]] = []
    for one in supplies:
        ref = Ref(one.deployment.endpoint, one.deployment.name)
        in_force, rejected = view.in_force(ref.endpoint), view.rejected
        told = partial(deployment_status, one, in_force=in_force, rejected=rejected)
        statuses.append((ref, memory.of(ref, (one, in_force, rejected), told)))
    routes = {key(route.name): route for route in draft.table.routes}
    for endpoint in draft.world.endpoints:
        if endpoint.deleting:
            continue
        name = key(endpoint.name)
        ref, behind = Ref(name), draft.behind[name]
        route, in_force, rejected = routes[name], view.in_force(name), view.rejected
        of_endpoint = partial(endpoint_status, endpoint, route, behind, in_force=in_force, rejected=rejected)
        statuses.append((ref, memory.of(ref, (endpoint, route, behind, in_force, rejected), of_endpoint)))
    return statuses


def _out_of_sight(hidden: Sequence[Deployment]) -> list[tuple[Ref, Status]]:
    told = [(d, out_of_sight(d)) for d in hidden]
    return [(Ref(d.endpoint, d.name), status) for d, status in told if status is not None]


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
