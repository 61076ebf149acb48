"""Our own: the agent with its Envoy, given a routing table as the control plane gives it.

Plain HTTP is the same without TLS, which the product does not offer (see ``edits``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from amphitrite.dataplane.table.routing_table import (
    Address,
    Cluster,
    InstanceAddress,
    Route,
    RoutingTable,
    Secret,
    SocketAddress,
    Target,
)
from bench.product import Unavailable
from bench.routers import KEY, SHARE, Place, Server, envoy
from tests.dataplane.agents import RunningAgent, eventually


def table(upstreams: Iterable[InstanceAddress], queue_wait_s: float = 0.0) -> RoutingTable:
    """One endpoint of two deployments, as the planner would make it."""
    clusters = tuple(
        Cluster(f"images|{name}", (address,), 10_000, 5.0)
        for name, address in zip(("blue", "green"), upstreams, strict=True)
    )
    targets = tuple(
        Target(c.name.partition("|")[2], c.name, 60.0, "/v2/models/m/infer", queue_wait_s=queue_wait_s)
        for c in clusters
    )
    keys = (Secret("f" * 32), Secret(KEY))
    return RoutingTable(1, (Route("images", keys, targets, (("blue", SHARE), ("green", 100 - SHARE))),), clusters)


def on_sockets(place: Place) -> AbstractContextManager[Server]:
    """With instances on UNIX sockets, as those of one machine are; pods have ports."""
    if place.sockets is None:
        raise ValueError("the upstreams listen on no sockets")
    return serve(place, upstreams=[SocketAddress(str(path)) for path in place.sockets])


@contextmanager
def serve(
    place: Place, *without: str, upstreams: Iterable[InstanceAddress] = (), queue_wait_s: float = 0.0
) -> Iterator[Server]:
    """``queue_wait_s``: how long a request above the limit may wait. None of a benchmark is."""
    certificate = place.certificate or own_certificate(place.work)
    if place.certificate is None:
        without = ("tls", *without)
    agent = RunningAgent(place.work, *certificate)
    agent.port = place.port
    program: tuple[str, ...] = ("-m", "amphitrite.dataplane")
    if without:
        program = ("-m", "bench.routers.programs.edited_agent", *without, "--")
    agent.program = ("taskset", "-c", ",".join(map(str, place.cores)), sys.executable, *program)
    agent.options = ("--concurrency", "1")
    try:
        agent.start()
        try:
            ports = [Address("127.0.0.1", port) for port in place.upstreams]
            agent.put_in_force(table(list(upstreams) or ports, queue_wait_s))
            eventually(lambda: (agent.state / "envoy.json").exists())
        except AssertionError as exc:
            raise Unavailable(f"the agent did not start: {exc}; {agent.log()[-600:]}") from None
        yield Server(place.port, agent.envoy().pid, envoy.version(), "tls" not in without, agent.pid)
    finally:
        agent.close()


def own_certificate(directory: Path) -> tuple[Path, Path]:
    from tests.certificate import write_certificate

    return write_certificate(directory)
