"""A newer Envoy takes the port over from an older one: no request fails, and an agent that dies on
the way is repaired.

``AMPHITRITE_TAKEOVERS`` sets how often it happens under load (default 3).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from amphitrite.dataplane.envoy.process.hot_restart import (
    LONGEST_SOCKET_NAME,
    HotRestart,
    RunningEnvoy,
    ServerState,
    StartDecision,
    decide_start,
)
from amphitrite.dataplane.machine import processes
from amphitrite.dataplane.machine.processes import ProcessRecord

from ...load.background import Client, load
from ..agents import BEARER, INFER, KEY, RESET_CONNECTIONS, RunningAgent, cluster, eventually, serves, table
from ..conftest import MakeAgent
from ..upstream import Upstream

CLIENTS = (
    Client("kept", INFER, b"{}", connections=4, think_ms=5),
    Client("anew", INFER, b"{}", connections=4, think_ms=5, headers=("Connection: close",)),
)
TAKEOVERS = int(os.environ.get("AMPHITRITE_TAKEOVERS", "3"))

OLD, NEW = RunningEnvoy(ProcessRecord(1, 1.0), "old", 0), RunningEnvoy(ProcessRecord(2, 2.0), "new", 1)
COLD = RunningEnvoy(ProcessRecord(1, 1.0), "old", None)
LIVE = ServerState(live=True, draining=False, hot_restart_version="11.104")
CHOICES = {
    "nothing runs": ((), None, "11.104", StartDecision.START),
    "the same settings": ((NEW,), LIVE, "11.104", StartDecision.ADOPT),
    "the same, while the one before it ends": ((OLD, NEW), LIVE, "11.104", StartDecision.ADOPT),
    "the same, before it has a table": ((NEW,), ServerState(False, False, "11.104"), "11.104", StartDecision.ADOPT),
    "the same, sent away": ((NEW,), ServerState(False, True, "11.104"), "11.104", StartDecision.REPLACE),
    "the same, does not answer": ((NEW,), None, "11.104", StartDecision.REPLACE),
    "others": ((OLD,), LIVE, "11.104", StartDecision.HOT_RESTART),
    "others, of a build that cannot be followed by this": ((OLD,), LIVE, "11.105", StartDecision.REPLACE),
    "others, started without": ((COLD,), ServerState(True, False, None), "11.104", StartDecision.REPLACE),
    "others, where we cannot": ((OLD,), LIVE, None, StartDecision.REPLACE),
    "others, before it has a table": ((OLD,), ServerState(False, False, "11.104"), "11.104", StartDecision.REPLACE),
}


@pytest.mark.parametrize(("found", "state", "version", "want"), CHOICES.values(), ids=CHOICES)
def test_what_becomes_of_those_that_run(
    found: tuple[RunningEnvoy, ...], state: ServerState | None, version: str | None, want: StartDecision
) -> None:
    assert decide_start(found, state, "new", version) is want


#: When the agent is killed once more: as soon as this holds, given the Envoy before and how many
#: log lines there were.
DEATHS: dict[str, Callable[[RunningAgent, ProcessRecord, str], bool]] = {
    "spawned": lambda agent, before, log: len(agent.envoys()) > 1,
    "never": lambda agent, before, log: False,
    "answers": lambda agent, before, log: "started envoy" in log,
    "decided": lambda agent, before, log: "hot restart of envoy" in log,
    "recorded": lambda agent, before, log: processes.read(agent.state / "envoy.json") != before,
}


def take_over(agent: RunningAgent, death: str) -> None:
    """A new agent finds an Envoy of other settings, and dies where ``death`` says; the next one
    finishes the work."""
    before, said = agent.envoy(), len(agent.log())
    agent.outdate()
    agent.kill()
    agent.control_plane.reports.clear()
    agent.start()
    if death != "never":
        eventually(lambda: DEATHS[death](agent, before, agent.log()[said:]))
        agent.kill()
        agent.start()
    eventually(lambda: processes.read(agent.state / "envoy.json") not in (None, before))


@pytest.mark.parametrize("number", range(40))
def test_a_rendezvous_has_a_name_that_fits(number: int) -> None:
    """From 2**31 on Envoy writes twenty digits into the names of its sockets, whose paths have a
    bound."""
    highest = HotRestart.of(Path(f"/home/{number}/state"), Path("run")).base_id * 10 + 9
    assert highest < 2**31 and len(f"hot_udp_parent_{highest}") <= len(LONGEST_SOCKET_NAME)


@RESET_CONNECTIONS
@pytest.mark.serving
def test_no_request_fails(make_agent: MakeAgent, tmp_path: Path) -> None:
    agent = make_agent()
    agent.start()
    with Upstream("blue") as blue, Upstream("green") as green:
        both = [cluster("blue", [blue], drain_s=1.0), cluster("green", [green], drain_s=1.0)]
        agent.put_in_force(table(1, both, [("blue", 100)]))
        with load(f"https://127.0.0.1:{agent.port}", agent.certificate, KEY, tmp_path / "load", CLIENTS) as seen:
            for number in range(TAKEOVERS):
                take_over(agent, list(DEATHS)[number % len(DEATHS)])
                # A change right after it is in force for all that is new.
                agent.put_in_force(table(2 + number, both, [(("green", "blue")[number % 2], 100)]))
        print(f"{TAKEOVERS} takeovers, {seen.requests} requests: {seen.results}")
        assert seen.failed == {}
        assert set(seen.results["kept"]["deployments"]) == {"blue", "green"}
        eventually(lambda: len(agent.envoys()) == 1)
        assert agent.terminate() == 0
    assert agent.envoys() == ()
    assert list(agent.run.iterdir()) == []


@RESET_CONNECTIONS
@pytest.mark.serving
def test_what_has_begun_ends_first(make_agent: MakeAgent) -> None:
    """A request in flight on the older Envoy is answered, and what it runs on does not count as
    drained before."""
    agent = make_agent()
    agent.start()
    with Upstream("blue") as blue, Upstream("green") as green:
        both = [cluster("blue", [blue], drain_s=20.0), cluster("green", [green], drain_s=20.0)]
        agent.put_in_force(table(1, both, [("blue", 100)]))
        agent.control_plane.wait_for(drained_version=1)
        with ThreadPoolExecutor(1) as pool:
            held = pool.submit(agent.client.post, INFER.replace("/m/", "/held/"), headers=BEARER)
            assert blue.arrived.acquire(timeout=30)
            take_over(agent, "never")
            agent.put_in_force(table(2, both[1:], [("green", 100)]))
            assert serves(agent)
            assert agent.control_plane.reports[-1]["drained_version"] < 2
            assert len(agent.envoys()) == 2
            blue.release()
            assert held.result().status_code == 200
        agent.control_plane.wait_for(drained_version=2)


@pytest.mark.serving
def test_the_new_one_dies_on_the_way(make_agent: MakeAgent) -> None:
    """Then nothing can follow the old one any more: it is ended, and the port is served anew."""
    agent = make_agent()
    agent.start()
    with Upstream("blue") as blue:
        agent.put_in_force(table(1, [cluster("blue", [blue])], [("blue", 100)]))
        agent.outdate()
        agent.kill()
        agent.start()
        eventually(lambda: len(agent.envoys()) > 1)
        new = agent.envoys()[-1].process
        processes.send_signal(new, signal.SIGKILL)
        eventually(lambda: not agent.alive())  # as with any Envoy that cannot be started
        assert "Envoy ended at its start" in agent.log()
        agent.start()  # which is its parent's to do
        recorded = lambda: processes.read(agent.state / "envoy.json")  # noqa: E731
        eventually(lambda: [one.process for one in agent.envoys()] == [recorded()] and serves(agent))
