"""Instances on UNIX sockets: the real Envoy reaches, checks, balances and drains them as it does
those on ports."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from amphitrite.dataplane.table.routing_table import Address, Cluster, SocketAddress

from .agents import BEARER, CHECK, INFER, KEY, RunningAgent, cluster, eventually, serves, table
from .conftest import MakeAgent
from .grpc_upstream import SERVICE, GrpcUpstream
from .upstream import Upstream

pytestmark = pytest.mark.serving


def answered_by(agent: RunningAgent) -> str:
    answer = agent.client.post(INFER, headers=BEARER, json={})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["upstream"])


def on_sockets(name: str, *directories: Path) -> Cluster:
    addresses = tuple(sorted(SocketAddress(str(d / "http"), str(d / "grpc")) for d in directories))
    return Cluster(name, addresses, 64, 5.0, CHECK)


def test_both_protocols_reach_the_instance(make_agent: MakeAgent, certificate: tuple[Path, Path]) -> None:
    agent = make_agent()
    agent.start()
    with Upstream("blue", agent.run / "http"), GrpcUpstream("blue", agent.run / "grpc"):
        agent.put_in_force(table(1, [on_sockets("blue", agent.run)], [("blue", 100)]))
        assert answered_by(agent) == "blue"
        trust = grpc.ssl_channel_credentials(certificate[0].read_bytes())
        metadata = (("amphitrite-endpoint", "images"), ("authorization", f"Bearer {KEY}"))
        with grpc.secure_channel(f"127.0.0.1:{agent.port}", trust) as channel:
            body = channel.unary_unary(f"/{SERVICE}/ModelInfer")(b"x", metadata=metadata, timeout=60)
        assert json.loads(body)["upstream"] == "blue"


def test_an_unhealthy_one_gets_nothing_until_it_is_healthy_again(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.start()
    one, two = agent.run / "1", agent.run / "2"
    one.mkdir()
    two.mkdir()
    with Upstream("one", one / "http") as first, Upstream("two", two / "http") as second:
        both = replace(
            on_sockets("blue", one, two), addresses=tuple(SocketAddress(str(d / "http")) for d in (one, two))
        )
        agent.put_in_force(table(1, [both], [("blue", 100)]))
        eventually(lambda: {answered_by(agent) for _ in range(8)} == {"one", "two"})
        first.ready = False
        eventually(lambda: {answered_by(agent) for _ in range(8)} == {"two"})
        second.ready = False
        eventually(lambda: not serves(agent))
        first.ready = True
        eventually(lambda: serves(agent) and answered_by(agent) == "one")


def test_an_instance_on_a_port_is_replaced_by_one_on_a_socket(make_agent: MakeAgent) -> None:
    """As by an upgrade: one cluster has both kinds for a while; nothing in flight is lost."""
    agent = make_agent()
    agent.start()
    with (
        Upstream("port") as old,
        Upstream("socket", agent.run / "http") as new,
        ThreadPoolExecutor(1) as pool,
    ):
        addresses = Address("127.0.0.1", old.port), SocketAddress(str(agent.run / "http"))
        by_version = {1: addresses[:1], 2: addresses, 3: addresses[1:]}
        for version, some in by_version.items():
            wanted = replace(cluster("blue", [old], drain_s=60), addresses=some)
            agent.put_in_force(table(version, [wanted], [("blue", 100)]))
            if version == 1:
                held = pool.submit(agent.client.post, INFER.replace("/m/", "/held/"), headers=BEARER)
                assert old.arrived.acquire(timeout=60)
        eventually(lambda: {answered_by(agent) for _ in range(8)} == {"socket"})
        old.release()
        assert held.result(60).json()["upstream"] == "port"
        agent.control_plane.wait_for(drained_version=3)
        assert len(new.scored()) > 0
