"""The samples of the real Envoy's demand against what its clients do."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from amphitrite.dataplane.machine import processes
from amphitrite.dataplane.table.routing_table import Route, RoutingTable, Secret, Target

from .agents import BEARER, INFER, KEY, cluster, eventually
from .conftest import MakeAgent
from .upstream import Upstream

HELD = INFER.replace("/m/", "/held/")
AGE, SECONDS, IN_FLIGHT, HELD_COUNT, ANSWERED, BUSY, REFUSED = range(2, 9)


@pytest.mark.serving
def test_what_is_in_work_what_has_ended_and_what_was_refused_is_sampled(make_agent: MakeAgent) -> None:
    with Upstream("blue") as blue, ThreadPoolExecutor(2) as pool:
        blue.hold()
        agent = make_agent()
        agent.start()
        targets = (
            Target("blue", "cb", 30.0, "/v2/models/m/infer", sample_every_s=0.1),
            Target("quiet", "cq", 30.0, "/v2/models/m/infer"),
        )
        images = Route("Images", (Secret(KEY),), targets, (("blue", 100),))
        agent.put_in_force(RoutingTable(1, (images,), (cluster("cb", [blue], max_requests=2), cluster("cq", [blue]))))
        samples = agent.control_plane.wait_for_samples
        samples(lambda found: bool(found))  # Idle, and it says so.

        post = lambda: agent.client.post(HELD.replace("images", "Images"), headers=BEARER, content=b"x")  # noqa: E731
        running = [pool.submit(post) for _ in range(2)]
        for _ in running:
            assert blue.arrived.acquire(timeout=60)
        samples(lambda found: found[-1][IN_FLIGHT] == 2)
        assert post().status_code == 429
        samples(lambda found: _sum(found, REFUSED) == 1)
        blue.release()
        assert [one.result().status_code for one in running] == [200, 200]
        found = samples(lambda found: _sum(found, ANSWERED) == 2 and found[-1][IN_FLIGHT] == 0)
        assert {(one[0], one[1]) for one in found} == {("Images", "blue")}
        # Two requests of about the time in which two were in flight.
        seen = sum(one[SECONDS] * one[IN_FLIGHT] for one in found)
        assert _sum(found, BUSY) >= seen * 0.5 > 0
        assert all(one[HELD_COUNT] == 0 for one in found)

        # Another process counts from zero: nothing is subtracted.
        first = agent.envoy()
        processes.send_signal(first, signal.SIGKILL)
        eventually(lambda: agent.envoy() != first and agent.health() == 200)
        assert post().status_code == 200
        before = len(found)
        found = samples(lambda found: len(found) > before and _is_idle(found[-1]))
        assert _sum(found, ANSWERED) in (2, 3)
        assert post().status_code == 200
        found = samples(lambda found: _sum(found, ANSWERED) >= 3)
        # No time is told twice: a flush that did not arrive is sent again as it was.
        assert len({flush["flush"] for flush in agent.control_plane.flushes}) == len(agent.control_plane.flushes)


def _sum(samples: list[list[Any]], field: int) -> float:
    return sum(sample[field] for sample in samples)


def _is_idle(sample: list[Any]) -> bool:
    return not any(sample[IN_FLIGHT:])
