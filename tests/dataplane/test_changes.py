"""Changes of the routing table under way: nothing fails, and the reports say what is true. Real
Envoy."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import httpx
import pytest

from amphitrite.dataplane.table.routing_table import RoutingTable, Secret

from ..certificate import write_certificate
from .agents import BEARER, INFER, RESET_CONNECTIONS, RunningAgent, cluster, eventually, serves, table
from .conftest import MakeAgent
from .upstream import Upstream

pytestmark = [pytest.mark.serving, RESET_CONNECTIONS]

HELD = INFER.replace("/m/", "/held/")


@contextmanager
def load(agent: RunningAgent, clients: int = 2) -> Iterator[Counter[int | str]]:
    """Requests one after the other on each of ``clients`` connections; counts by status code or
    kind of failure."""
    seen: Counter[int | str] = Counter()
    stop = threading.Event()

    def one() -> None:
        with httpx.Client(base_url=agent.client.base_url, verify=False, timeout=30, trust_env=False) as client:
            while not stop.is_set():
                try:
                    seen[client.post(INFER, headers=BEARER, content=b"{}").status_code] += 1
                except httpx.HTTPError as exc:
                    seen[type(exc).__name__] += 1
                stop.wait(0.005)

    with ThreadPoolExecutor(clients) as pool:
        runs = [pool.submit(one) for _ in range(clients)]
        try:
            yield seen
        finally:
            stop.set()
        for run in runs:
            run.result()


def test_no_request_fails_through_changes_of_weight_and_cluster(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.start()
    with ExitStack() as stack:
        ups = [stack.enter_context(Upstream(f"u{n}")) for n in range(4)]
        version = 1
        agent.put_in_force(table(version, [cluster("c0", ups[:1])], [("c0", 100)]))
        with load(agent) as seen:
            for change in range(20):
                version += 1
                # Each time another cluster appears and the one before the last goes; sometimes with
                # two addresses.
                old, new = f"c{change}", f"c{change + 1}"
                clusters = [cluster(old, [ups[change % 4]]), cluster(new, [ups[(change + 1) % 4]])]
                percent = 10 * (change % 9 + 1)
                agent.put_in_force(table(version, clusters, [(old, 100 - percent), (new, percent)]))
                # However fast changes are: each meets requests.
                enough = seen.total() + 20
                eventually(lambda enough=enough: seen.total() >= enough)  # type: ignore[misc]
        assert set(seen) == {200}
        agent.control_plane.wait_for(drained_version=version)


def test_no_request_fails_when_an_instance_is_lost_and_lost_requests_run_again(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.start()
    with Upstream("one") as one, Upstream("two") as two:
        agent.put_in_force(table(1, [cluster("c", [one, two])], [("c", 100)], retry_lost=True))
        with load(agent) as seen:
            eventually(lambda: bool(one.scored()) and bool(two.scored()))
            one.lost = True
            before = seen[200]
            eventually(lambda: seen[200] >= before + 300)
        assert set(seen) == {200}


def test_what_reached_no_instance_runs_on_another(make_agent: MakeAgent) -> None:
    """Whatever the deployment says of retries: a connection that is refused has carried nothing."""
    agent = make_agent()
    agent.start()
    with Upstream("gone") as gone, Upstream("two") as two:
        agent.put_in_force(table(1, [cluster("c", [gone, two])], [("c", 100)]))
        gone.stop()  # only its connection for health checks stays, so Envoy goes on choosing it
        answers = [agent.client.post(INFER, headers=BEARER, content=b"{}").status_code for _ in range(40)]
        assert set(answers) == {200}
        assert (len(gone.scored()), len(two.scored())) == (0, 40)


def test_new_instances_are_waited_for(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.start()
    with Upstream("blue") as blue, Upstream("green") as green:
        agent.put_in_force(table(1, [cluster("blue", [blue])], [("blue", 100)]))
        green.ready = False
        agent.control_plane.publish(table(2, [cluster("blue", [blue]), cluster("green", [green])], [("green", 100)]))
        eventually(lambda: green.health_checks > 0)
        assert agent.client.post(INFER, headers=BEARER).headers["azureml-model-deployment"] == "blue"
        green.ready = True
        agent.control_plane.wait_for(acknowledged_version=2)
        assert agent.client.post(INFER, headers=BEARER).headers["azureml-model-deployment"] == "green"


def retired_cluster(blue: Upstream, green: Upstream) -> list[RoutingTable]:
    both = [cluster("blue", [blue], drain_s=30), cluster("green", [green], drain_s=30)]
    return [table(1, both, [("blue", 100)]), table(2, both[1:], [("green", 100)])]


def retired_address(blue: Upstream, green: Upstream) -> list[RoutingTable]:
    one, two = cluster("c", [blue, green], 64, 30), cluster("c", [green], 32, 30)
    return [table(1, [one], [("c", 100)]), table(2, [two], [("c", 100)])]


@pytest.mark.parametrize("tables", [retired_cluster, retired_address])
def test_drained_is_reported_only_when_nothing_is_in_flight(
    tables: Callable[[Upstream, Upstream], list[RoutingTable]], make_agent: MakeAgent
) -> None:
    agent = make_agent()
    agent.start()
    with Upstream("blue") as blue, Upstream("green") as green, ThreadPoolExecutor(8) as pool:
        first, second = tables(blue, green)
        agent.put_in_force(first)
        held = []
        while not blue.arrived.acquire(timeout=0.5):  # two addresses: some land on the other
            held.append(pool.submit(agent.client.post, HELD, headers=BEARER))
        agent.put_in_force(second)
        version, hasty = 2, time.monotonic() + 1.0  # three times what counts as quiet
        while time.monotonic() < hasty:
            assert serves(agent)
            version += 1  # a newer table does not wait for an older one to be drained
            agent.put_in_force(replace(second, version=version, max_body_bytes=1000 + version))
        assert len(blue.scored()) <= len(held)
        assert {r["drained_version"] for r in agent.control_plane.reports} <= {0, 1}
        blue.release()
        green.release()
        assert {h.result().status_code for h in held} == {200}
        agent.control_plane.wait_for(drained_version=version)


def test_drain_ends_with_its_time(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.start()
    with Upstream("blue") as blue, Upstream("green") as green, ThreadPoolExecutor(1) as pool:
        both = [cluster("blue", [blue], drain_s=1), cluster("green", [green])]
        agent.put_in_force(table(1, both, [("blue", 100)]))
        held = pool.submit(agent.client.post, HELD, headers=BEARER)
        assert blue.arrived.acquire(timeout=30)
        agent.put_in_force(table(2, both[1:], [("green", 100)]))
        agent.control_plane.wait_for(drained_version=2)
        assert not held.done()
        blue.release()
        assert held.result().status_code == 200


def test_refused_table_changes_nothing_and_says_why(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.start()
    with Upstream("blue") as blue:
        good = table(1, [cluster("blue", [blue])], [("blue", 100)])
        agent.put_in_force(good)
        # Envoy refuses an interval of no length; a key of its own shows that none is told.
        bad_check = replace(good.clusters[0].health_check, interval_s=0.0)
        bad_cluster = replace(good.clusters[0], name="bad", health_check=bad_check)
        route = replace(good.routes[0], credentials=(Secret("another-secret"),))
        bad = replace(good, version=2, clusters=(bad_cluster, *good.clusters), routes=(route,))
        agent.control_plane.publish(bad)
        told = agent.control_plane.wait_for(rejected_version=2)
        assert (told["acknowledged_version"], told["drained_version"]) == (1, 1)
        assert "interval" in str(told["error"]).lower()
        assert "another-secret" not in str(told["error"]) + agent.log()
        assert serves(agent)
        agent.put_in_force(replace(good, version=3))
        assert agent.control_plane.reports[-1]["rejected_version"] is None


def test_renewed_certificate_is_served_without_restart(make_agent: MakeAgent) -> None:
    agent = make_agent()
    own = agent.state.parent / "own"
    own.mkdir()
    agent.certificate, agent.private_key = write_certificate(own)
    agent.start()
    with Upstream("blue") as blue:
        agent.control_plane.publish(table(1, [cluster("blue", [blue])], [("blue", 100)]))
        first = agent.presented_certificate()
        write_certificate(own)
        eventually(lambda: agent.presented_certificate() != first)
