"""What ``max_queue_wait_ms`` costs each request of a deployment that has it.

Both proxies serve the same two upstreams, one after the other in each round; no request is above
the limit, so none waits. The agent's CPU is counted beside Envoy's: it is asked about each request.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import psutil

from bench.loadgen import Load
from bench.router import CONNECTIONS, FULL, QUICK, WARM_S, Serve, aim, requests, started, turned, upstreams
from bench.routers import Server, ours
from bench.stats import Report, differences, middle, spread

WITHOUT, WITH = "without", "max_queue_wait_ms: 500"
ROUTERS: dict[str, Serve] = {WITHOUT: ours.serve, WITH: partial(ours.serve, queue_wait_s=0.5)}


def run(work: Path, *, quick: bool = False) -> Report:
    length = QUICK if quick else FULL
    seen: dict[int, dict[str, list[tuple[Load, float]]]] = {}
    with upstreams(work) as behind, started(work, ROUTERS, True, behind) as field:
        request = requests(work)["1 KB"]
        for number in range(length.rounds + 1):
            for connections in CONNECTIONS:
                for name, server in turned(field.servers, number):
                    found = measured(server, request, connections, length.seconds if number else WARM_S)
                    if number:
                        seen.setdefault(connections, {}).setdefault(name, []).append(found)
    return Report({"1 KB, TLS": [row for connections, cell in seen.items() for row in rows(connections, cell)]})


def measured(server: Server, request: Path, connections: int, seconds: float) -> tuple[Load, float]:
    """The load, and the agent's CPU for each request in microseconds."""
    agent = psutil.Process(server.agent)
    before = sum(agent.cpu_times()[:2])
    load = aim(server).run(request, connections, seconds)
    return load, (sum(agent.cpu_times()[:2]) - before) / max(load.requests, 1) * 1e6


def rows(connections: int, cell: dict[str, list[tuple[Load, float]]]) -> list[dict[str, Any]]:
    plain = [load for load, _ in cell[WITHOUT]]
    return [
        {
            "connections": connections,
            "deployment": name,
            "rps": middle([load.rps for load, _ in found], 0),
            "spread": round(spread([load.rps for load, _ in found]), 2),
            "envoy_cpu_us": middle([load.cpu_us for load, _ in found], 1),
            "agent_cpu_us": middle([cpu for _, cpu in found], 1),
            "p50_ms": middle([load.p50_ms for load, _ in found], 3),
            "p99_ms": middle([load.p99_ms for load, _ in found], 3),
            "added_p50_ms": middle(differences([load.p50_ms for load, _ in found], [load.p50_ms for load in plain]), 3),
            "failed": sum(load.failed for load, _ in found),
        }
        for name, found in cell.items()
    ]
