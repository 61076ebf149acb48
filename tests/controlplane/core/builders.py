"""Short names for the values that the rows are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from amphitrite.controlplane.core.desired.resources import (
    DEFAULT_LIVENESS_PROBE,
    DEFAULT_READINESS_PROBE,
    Deployment,
    Endpoint,
    ModelReference,
    WorkloadSpec,
    workload_spec,
)
from amphitrite.controlplane.core.observed.observations import AgentReport, Instance
from amphitrite.controlplane.core.observed.status import World
from amphitrite.controlplane.core.planning.memo import Memory
from amphitrite.controlplane.core.planning.plan import Plan, complete, draft
from amphitrite.dataplane.table.routing_table import Address, Cluster, Route, RoutingTable, Secret, Target

NOW = 1_000.0
KEYS = (Secret("one"), Secret("two"))


def model(version: int = 1, names: tuple[str, ...] = ("m",)) -> ModelReference:
    return ModelReference("m", str(version), f"digest-{version}", names)


def workload(name: str = "blue", version: int = 1, endpoint: str = "ep") -> WorkloadSpec:
    return workload_spec(endpoint, name, model(version), "Standard_DS3_v2", {})


def deployment(
    name: str = "blue", *, version: int = 1, count: int = 1, endpoint: str = "ep", **more: Any
) -> Deployment:
    """Generation 1, not observed yet, never succeeded; ``done=True`` is a deployment long
    settled."""
    done = more.pop("done", False)
    value = Deployment(
        endpoint=endpoint,
        name=name,
        workload=workload(name, version, endpoint),
        instance_count=count,
        request_timeout_ms=5000,
        max_concurrent_requests_per_instance=8,
        readiness_probe=DEFAULT_READINESS_PROBE,
        liveness_probe=DEFAULT_LIVENESS_PROBE,
        scoring_model=None,
        generation=1,
        observed_generation=1 if done else 0,
        deleting=False,
        ever_succeeded=done,
        changed_at=0.0,
    )
    return replace(value, **more)


def endpoint(name: str = "ep", **more: Any) -> Endpoint:
    return replace(Endpoint(name, KEYS, (), (), 1, 1, False), **more)


def instance(of: WorkloadSpec, slot: int = 0, attempt: int = 1, phase: Any = "ready", **more: Any) -> Instance:
    """Started at 900; a ready one is ready since 901; an exited one failed at NOW unless told
    otherwise."""
    exited = phase == "exited"
    value = Instance(
        id=f"{of.name}-{slot}-{attempt}",
        workload=of,
        slot=slot,
        attempt=attempt,
        phase=phase,
        address=address(of, slot, attempt),
        started_at=900.0,
        ready_at=901.0 if phase in ("ready", "unready") else None,
        exited_at=NOW if exited else None,
        exit_code=1 if exited else None,
        reason="failed to load" if exited else None,
    )
    return replace(value, **more)


def address(of: WorkloadSpec, slot: int = 0, attempt: int = 1) -> Address:
    """A port of its own for each workload, slot and attempt."""
    return Address("127.0.0.1", 20_000 + int(of.name[-4:], 16) % 10_000 + 10 * slot + attempt)


def agent(version: int = 1, *, drained: int | None = None, **more: Any) -> AgentReport:
    return replace(AgentReport("local", version, version if drained is None else drained, NOW), **more)


def table(*served: Instance, split: tuple[tuple[str, int], ...] = (), version: int = 1, **more: Any) -> RoutingTable:
    """What the planner publishes for one endpoint ``ep`` whose deployments are served by these
    instances."""
    by_workload: dict[str, list[Instance]] = {}
    for one in served:
        by_workload.setdefault(one.workload.name, []).append(one)
    clusters = tuple(
        Cluster(
            name=name,
            addresses=tuple(sorted(i.address for i in by_workload[name] if i.address)),
            max_requests=8 * len(by_workload[name]),
            drain_timeout_s=60.0,
        )
        for name in sorted(by_workload)
    )
    targets = tuple(
        Target(name, cluster, 5.0, "/v2/models/m/infer", per_instance=8)
        for name, cluster in sorted((i[0].workload.deployment, name) for name, i in by_workload.items())
    )
    return RoutingTable(version, (Route("ep", KEYS, targets, split),), clusters, **more)


def world(
    *deployments: Deployment, endpoints: tuple[Endpoint, ...] | None = None, published: RoutingTable | None = None
) -> World:
    return World(
        endpoints=(endpoint(),) if endpoints is None else endpoints,
        deployments=deployments,
        table=RoutingTable(0) if published is None else published,
    )


def plan(
    world: World,
    instances: Sequence[Instance],
    agents: Sequence[AgentReport],
    now: float,
    unknown: frozenset[str] = frozenset(),
    memory: Memory | None = None,
) -> Plan:
    """Both halves of a pass's plan: the reconciler publishes the table of the first before it makes
    the second."""
    return complete(draft(world, instances, agents, now, unknown, memory=memory), memory)
