"""The agent's life: who may die, and what goes on serving. Real Envoy, real processes."""

from __future__ import annotations

import signal
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from amphitrite.dataplane.envoy.process.admin_client import AdminClient
from amphitrite.dataplane.machine import processes

from .agents import BEARER, INFER, RESET_CONNECTIONS, cluster, eventually, serves, table
from .conftest import MakeAgent
from .upstream import Upstream

pytestmark = [pytest.mark.serving, RESET_CONNECTIONS]


def test_envoy_is_killed_while_the_control_plane_is_away(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.start()
    with Upstream("blue") as blue:
        agent.put_in_force(table(1, [cluster("blue", [blue])], [("blue", 100)]))
        assert serves(agent)
        admin = AdminClient(agent.run / "envoy-admin.sock")
        many = [f"absent-{number:08}" for number in range(5_000)]  # too many for an address
        assert set(admin.hosts(["blue", *many])) == {"blue"}
        admin.close()
        agent.control_plane.stop()
        before = agent.envoy()
        assert processes.send_signal(before, signal.SIGKILL)
        eventually(lambda: not processes.alive(before))
        eventually(lambda: serves(agent))
        assert agent.envoy() != before


def test_agent_is_killed_and_another_adopts_envoy(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.start()
    with Upstream("blue") as blue, Upstream("green") as green:
        agent.put_in_force(table(1, [cluster("blue", [blue])], [("blue", 100)]))
        envoy = agent.envoy()
        agent.kill()
        assert serves(agent)
        agent.control_plane.stop()
        agent.start()
        eventually(lambda: "adopted envoy" in agent.log())
        assert serves(agent)
        agent.control_plane.reports.clear()
        agent.control_plane.start()
        agent.put_in_force(table(2, [cluster("blue", [blue]), cluster("green", [green])], [("green", 100)]))
        answer = agent.client.post(INFER, headers=BEARER)
        assert (answer.status_code, answer.headers["azureml-model-deployment"]) == (200, "green")
        assert agent.envoy() == envoy


def test_both_are_killed_and_the_saved_table_serves(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.start()
    with Upstream("blue") as blue:
        agent.put_in_force(table(1, [cluster("blue", [blue])], [("blue", 100)]))
        agent.control_plane.stop()
        agent.kill()
        processes.send_signal(agent.envoy(), signal.SIGKILL)
        assert (agent.state / "routing-table.json").stat().st_mode & 0o777 == 0o600
        agent.start()
        eventually(lambda: serves(agent))


def test_stop_waits_for_what_is_in_flight_and_leaves_nothing(make_agent: MakeAgent) -> None:
    agent = make_agent()
    process = agent.start()
    with Upstream("blue") as blue:
        agent.put_in_force(table(1, [cluster("blue", [blue])], [("blue", 100)]))
        envoy = agent.envoy()
        with ThreadPoolExecutor(1) as pool:
            held = pool.submit(agent.client.post, INFER.replace("/m/", "/held/"), headers=BEARER)
            assert blue.arrived.acquire(timeout=30)
            process.terminate()
            eventually(lambda: "draining envoy" in agent.log())
            assert process.poll() is None
            blue.release()
            assert held.result().status_code == 200
        assert process.wait(30) == 0
    assert not processes.alive(envoy)
    assert sorted(p.name for p in agent.run.iterdir()) == []
    assert not (agent.state / "envoy.json").exists()
    assert not (agent.state / "agent.json").exists()


def test_used_port_is_refused_and_named(make_agent: MakeAgent) -> None:
    agent = make_agent()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", agent.port))
        taken.listen()
        assert agent.start().wait(30) == 5
    assert f"port {agent.port} on 127.0.0.1 is in use by" in agent.log()
    assert not (agent.state / "envoy.json").exists()


def test_second_agent_on_the_same_state_is_refused(make_agent: MakeAgent) -> None:
    agent = make_agent()
    first = agent.start()
    eventually(lambda: (agent.state / "envoy.json").exists())
    assert agent.start().wait(30) == 6
    assert first.poll() is None
    first.terminate()
    assert first.wait(30) == 0
