"""The agent and Envoy alone, given routing tables directly: time to effect, memory, cold start."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from amphitrite.dataplane.table.routing_table import Address, Cluster, Route, RoutingTable, Secret, Target
from bench import machine
from bench.controls.effect import Watch
from bench.stats import percentile
from tests.certificate import write_certificate
from tests.dataplane.agents import RunningAgent

KEY = "0123456789abcdef0123456789abcdef"
NAMES = ("blue", "green")


def table(endpoints: int, upstream: int) -> RoutingTable:
    """Endpoints of two deployments, all of whose instances are one upstream; blue has the traffic.
    Nobody asks by gRPC, but as with Triton everybody could."""
    names = [f"endpoint-{number:04}" for number in range(endpoints)]
    address = (Address("127.0.0.1", upstream, upstream),)
    clusters = tuple(Cluster(f"{name}|{d}", address, 64, 5.0) for name in names for d in NAMES)
    routes = tuple(
        Route(
            name,
            (Secret(KEY), Secret(KEY[::-1])),
            tuple(Target(d, f"{name}|{d}", 5.0, "/v2/models/m/infer") for d in NAMES),
            (("blue", 100),),
        )
        for name in names
    )
    return RoutingTable(1, routes, clusters)


def turned(whole: RoutingTable, position: int) -> RoutingTable:
    """The next version, with the traffic of one endpoint on its other deployment."""
    route = whole.routes[position]
    other = NAMES[1 - NAMES.index(route.split[0][0])]
    routes = list(whole.routes)
    routes[position] = replace(route, split=((other, 100),))
    return replace(whole, version=whole.version + 1, routes=tuple(routes))


def measure(work: Path, endpoints: int, upstream: int, changes: int) -> dict[str, Any]:
    """One row."""
    work.mkdir()
    agent = RunningAgent(work, *write_certificate(work))
    try:
        current = table(endpoints, upstream)
        agent.control_plane.publish(current)
        last = len(current.routes) - 1
        began = time.perf_counter()
        agent.start()
        with Watch(agent.port, agent.certificate, current.routes[last].name, KEY) as watch:
            while not answers(watch):
                if time.perf_counter() - began > 120:
                    raise TimeoutError(f"the proxy did not serve {endpoints} endpoints within 120 s")
            cold = time.perf_counter() - began
            agent.control_plane.wait_for(60.0, acknowledged_version=1)
            times = []
            for _ in range(changes):
                current = turned(current, last)
                goal = current.routes[last].split[0][0]
                version = current
                times.append(watch.change(lambda version=version: agent.control_plane.publish(version), goal))  # type: ignore[misc]
                agent.control_plane.wait_for(60.0, acknowledged_version=current.version)
        return {
            "endpoints": endpoints,
            "changes": changes,
            "effect_p50_ms": round(percentile(times, 0.5), 1),
            "effect_p99_ms": round(percentile(times, 0.99), 1),
            "effect_max_ms": round(max(times), 1),
            "cold_start_s": round(cold, 2),
            "envoy_mb": round(machine.memory_mb(agent.envoy().pid)),
            "agent_mb": round(machine.memory_mb(agent.pid, alone=True)),
        }
    finally:
        agent.close()


def answers(watch: Watch) -> bool:
    try:
        return watch.served_by() != ""
    except OSError:
        time.sleep(0.005)
        return False
