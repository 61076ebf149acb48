"""The contract of every runtime, held against the one in memory and the one with real Tritons."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from amphitrite.controlplane.core.observed import Instance

from .runtime_subjects import PROBE, Local, Memory, one, workload

SPEC = workload()
ID = f"{SPEC.name}-0-0"


@pytest.fixture(
    params=["memory", pytest.param("local", marks=pytest.mark.serving)],
)
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory | Local]:
    made: Memory | Local = Memory() if request.param == "memory" else Local(tmp_path)
    yield made
    made.close()


def phase_of(subject: Memory | Local, instance_id: str = ID) -> str:
    return one(subject.runtime, instance_id).phase


def started(subject: Memory | Local) -> Instance:
    subject.runtime.start(SPEC, 0, 0, PROBE, PROBE)
    subject.until(lambda: phase_of(subject) == "ready")
    return one(subject.runtime, ID)


def test_the_life_of_an_instance(subject: Memory | Local) -> None:
    assert subject.runtime.observe() == ()
    subject.runtime.start(SPEC, 0, 0, PROBE, PROBE)
    starting = one(subject.runtime, ID)
    assert (starting.phase, starting.ready_at, starting.slot, starting.attempt) == ("starting", None, 0, 0)
    assert starting.workload == SPEC
    subject.runtime.start(SPEC, 0, 0, PROBE, PROBE)
    assert len(subject.runtime.observe()) == 1, "starting twice is starting once"

    ready = started(subject)
    assert ready.address is not None
    assert ready.live
    assert ready.engine
    assert ready.ready_at is not None
    assert ready.ready_at >= ready.started_at
    subject.runtime.forget(ID)
    assert phase_of(subject) == "ready", "only what has exited can be forgotten"

    subject.runtime.stop(ID, 20)
    assert phase_of(subject) in ("stopping", "exited")
    subject.until(lambda: phase_of(subject) == "exited")
    subject.runtime.stop(ID, 20)
    exited = one(subject.runtime, ID)
    assert (exited.requested_stop, exited.reason, exited.address) == (True, None, None)
    subject.runtime.forget(ID)
    subject.runtime.forget(ID)
    subject.runtime.stop(ID, 20)
    assert subject.runtime.observe() == ()


def test_a_model_that_cannot_be_loaded(subject: Memory | Local) -> None:
    broken = workload("broken")
    subject.runtime.start(broken, 0, 0, PROBE, PROBE)
    instance_id = f"{broken.name}-0-0"
    subject.until(lambda: phase_of(subject, instance_id) == "exited")
    exited = one(subject.runtime, instance_id)
    assert (exited.requested_stop, exited.ready_at) == (False, None)
    assert (exited.reason or "").startswith("failed to load 'tiny' version 1: ")
    assert "failed to load 'tiny'" in subject.runtime.logs("EP", "Blue", 1000), "the log of a crashed one stays"


def test_a_killed_instance_and_its_neighbour(subject: Memory | Local) -> None:
    subject.runtime.start(SPEC, 1, 0, PROBE, PROBE)
    started(subject)
    subject.until(lambda: phase_of(subject, f"{SPEC.name}-1-0") == "ready")
    subject.crash(ID)
    subject.until(lambda: phase_of(subject) == "exited")
    exited = one(subject.runtime, ID)
    assert (exited.requested_stop, exited.exit_code) == (False, -9)
    assert "SIGKILL" in (exited.reason or "")
    assert phase_of(subject, f"{SPEC.name}-1-0") == "ready"
    headings = [line for line in subject.runtime.logs("ep", "blue", 5).splitlines() if line.startswith("==>")]
    assert len(headings) == 2
    assert subject.runtime.logs("ep", "green", 5) == ""
