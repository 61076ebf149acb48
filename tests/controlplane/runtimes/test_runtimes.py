"""The contract of every runtime, held against the one in memory, the one with real Tritons, and the
one with pods.

The one with pods needs a cluster: see ``tests/cluster/node.py`` for how to get one; it is skipped
where there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_settings import TRITON_IMAGE
from amphitrite.controlplane.runtimes.runtime import LogQuery

from ...cluster.images import provide
from ...cluster.node import Cluster, running
from .kubernetes_subject import Pods
from .runtime_subjects import PROBE, Local, Memory

pytestmark = pytest.mark.early
Subject = Memory | Local | Pods


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[Cluster, tuple[str, str]]]:
    """With the images of the fetcher and of Triton on its nodes."""
    with running() as cluster, cluster.turn():
        built = provide(cluster, "fetcher", "triton")
        yield cluster, (built["fetcher"], TRITON_IMAGE)


@pytest.fixture(
    params=["memory", *(pytest.param(one, marks=pytest.mark.serving) for one in ("local", "kubernetes"))],
)
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subject]:
    made: Subject
    if request.param == "kubernetes":
        where, images = request.getfixturevalue("cluster")
        made = Pods(where, tmp_path, images)
    else:
        made = Memory() if request.param == "memory" else Local(tmp_path)
    yield made
    made.close()


def newest(subject: Subject, model: str = "good", slot: int = 0) -> Instance | None:
    """The last attempt in a slot."""
    wanted = subject.workload(model)
    found = [i for i in subject.runtime.observe() if (i.workload, i.slot) == (wanted, slot)]
    return max(found, key=lambda i: i.attempt, default=None)


def phase_of(subject: Subject, slot: int = 0) -> str | None:
    found = newest(subject, slot=slot)
    return found.phase if found else None


def ended(subject: Subject, model: str = "good") -> list[Instance]:
    return [i for i in subject.runtime.observe() if i.phase == "exited" and i.workload == subject.workload(model)]


def started(subject: Subject, slot: int = 0) -> Instance:
    subject.runtime.start(subject.workload(), slot, 1, PROBE, PROBE)
    subject.until(lambda: phase_of(subject, slot) == "ready")
    found = newest(subject, slot=slot)
    assert found is not None
    return found


WITH_TRITON = [pytest.param(one, marks=pytest.mark.serving) for one in ("local", "kubernetes")]


@pytest.mark.parametrize("subject", WITH_TRITON, indirect=True)
def test_models_for_a_gpu_are_served_on_the_cpu_and_it_is_said(subject: Subject) -> None:
    spec = subject.workload("gpu")
    subject.runtime.start(spec, 0, 1, PROBE, PROBE)
    subject.until(lambda: (found := newest(subject, "gpu")) is not None and found.phase == "ready")
    found = newest(subject, "gpu")
    assert found is not None
    assert found.note == subject.noted(
        "python/config.pbtxt:2, tiny/config.pbtxt:1: KIND_GPU is served on the CPU, "
        f"because {spec.instance_type} has no GPU"
    )


def test_the_life_of_an_instance(subject: Subject) -> None:
    spec = subject.workload()
    assert (subject.runtime.observe(), subject.runtime.unknown()) == ((), frozenset())
    subject.runtime.start(spec, 0, 1, PROBE, PROBE)
    starting = newest(subject)
    assert starting is not None
    assert (starting.phase, starting.ready_at, starting.slot, starting.attempt) == ("starting", None, 0, 1)
    assert starting.workload == spec
    subject.runtime.start(spec, 0, 1, PROBE, PROBE)
    assert len(subject.runtime.observe()) == 1, "starting twice is starting once"

    ready = started(subject)
    assert ready.address is not None
    assert ready.live
    assert ready.engine
    assert ready.ready_at is not None
    assert ready.ready_at >= ready.started_at
    subject.runtime.forget(ready.id)
    assert phase_of(subject) == "ready", "only what has exited can be forgotten"

    subject.runtime.stop(ready.id, 20)
    assert phase_of(subject) in ("stopping", "exited")
    subject.until(lambda: all(i.phase == "exited" for i in subject.runtime.observe()))
    subject.runtime.stop(ready.id, 20)
    records = subject.runtime.observe()
    assert [(i.requested_stop, i.reason, i.address) for i in records] == [(True, None, None)] * subject.keeps_records
    subject.runtime.forget(ready.id)
    subject.runtime.forget(ready.id)
    subject.runtime.stop(ready.id, 20)
    assert subject.runtime.observe() == ()


def test_a_model_that_cannot_be_loaded(subject: Subject) -> None:
    subject.runtime.start(subject.workload("broken"), 0, 1, PROBE, PROBE)
    told = "failed to load 'tiny' version 1: "
    subject.until(lambda: any((i.reason or "").startswith(told) for i in ended(subject, "broken")))
    exited = ended(subject, "broken")[-1]
    assert (exited.requested_stop, exited.ready_at, exited.slot) == (False, None, 0)
    assert "failed to load 'tiny'" in subject.runtime.logs("EP", "Blue", LogQuery(1000)), (
        "the log of a crashed one stays"
    )


def test_a_killed_instance_and_its_neighbour(subject: Subject) -> None:
    killed = started(subject)
    neighbour = started(subject, slot=1)
    assert killed.id != neighbour.id
    subject.crash(killed.id)
    subject.until(lambda: bool(ended(subject)))
    (exited,) = ended(subject)
    assert exited.id.startswith(killed.id)
    assert (exited.requested_stop, exited.exit_code) == (False, -9)
    assert "SIGKILL" in (exited.reason or "")
    assert neighbour.id in {i.id for i in subject.runtime.observe() if i.phase == "ready"}
    headings = [line for line in subject.runtime.logs("ep", "blue", LogQuery(5)).splitlines() if line.startswith("==>")]
    assert {killed.id, neighbour.id} <= {line.split()[1].rstrip(",").partition("#")[0] for line in headings}
    assert subject.runtime.logs("ep", "green", LogQuery(5)) == ""


def test_one_of_two_is_stopped(subject: Subject) -> None:
    first, second = started(subject), started(subject, slot=1)
    subject.runtime.stop(second.id, 20)
    subject.runtime.stop(second.id, 20)
    phases = {i.id: i.phase for i in subject.runtime.observe()}
    assert phases[first.id] == "ready"
    assert phases[second.id] in ("stopping", "exited")
    subject.until(lambda: [i.id for i in subject.runtime.observe() if i.phase != "exited"] == [first.id])
    assert phase_of(subject) == "ready", "the other one keeps its slot"
