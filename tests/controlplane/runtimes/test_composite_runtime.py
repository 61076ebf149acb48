"""Several runtimes as one: each verb goes where the workload's compute is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from amphitrite.controlplane.runtimes.composite import CompositeRuntime
from amphitrite.controlplane.runtimes.runtime import LogQuery
from amphitrite.schemas.errors import Error

from .memory_runtime import MemoryRuntime
from .runtime_subjects import PROBE, workload

HERE = workload()
THERE = replace(workload(deployment="green"), name="ep-green-there", compute="gpus")


class Silent(MemoryRuntime):
    """A cluster that has not answered yet."""

    def unknown(self) -> frozenset[str]:
        return frozenset({"gpus"})


def started() -> tuple[CompositeRuntime, MemoryRuntime, MemoryRuntime]:
    local, gpus = MemoryRuntime(lambda: 1.0), MemoryRuntime(lambda: 1.0)
    both = CompositeRuntime(local)
    both.add("gpus", gpus)
    both.start(HERE, 0, 1, PROBE, PROBE)
    both.start(THERE, 0, 1, PROBE, PROBE)
    return both, local, gpus


def test_a_workload_runs_on_its_compute() -> None:
    both, local, gpus = started()
    assert [i.workload for i in local.observe()] == [HERE]
    assert [i.workload for i in gpus.observe()] == [THERE]
    assert both.observe() == tuple(sorted((*local.observe(), *gpus.observe()), key=lambda i: i.id))
    assert both.computes() == ("gpus", "local")


@pytest.mark.parametrize("observed", [True, False])
def test_an_instance_is_stopped_and_forgotten_where_it_is(observed: bool) -> None:
    both, local, gpus = started()
    (there,) = gpus.observe()
    if observed:
        both.observe()
    both.stop(there.id, 1.0)
    assert [i.phase for i in gpus.observe()] == ["stopping"]
    assert [i.phase for i in local.observe()] == ["starting"]
    gpus.settle()
    both.forget(there.id)
    assert gpus.observe() == ()


def test_a_cluster_that_refuses_a_stop_concerns_nobody_else() -> None:
    both, local, gpus = started()
    gpus.fail_once("stop", Error("KubernetesUnaccessible", "no answer"))
    (here,) = local.observe()
    both.observe()
    both.stop(here.id, 1.0)
    assert [i.phase for i in local.observe()] == ["stopping"]


def test_logs_of_both_and_wakes_from_both() -> None:
    both, local, gpus = started()
    wakes: list[str] = []
    both.watch(lambda: wakes.append("woken"))
    gpus.crash(gpus.observe()[0].id, reason="there")
    local.crash(local.observe()[0].id, reason="here")
    assert len(wakes) == 2
    assert "here" in both.logs("ep", "blue", LogQuery(5))
    assert "there" in both.logs("ep", "green", LogQuery(5))


def test_computes_come_and_go() -> None:
    both, _, gpus = started()
    wakes: list[str] = []
    both.watch(lambda: wakes.append("woken"))
    both.add("gpus", Silent(lambda: 1.0))
    assert both.unknown() == {"gpus"}
    gpus.settle()
    assert wakes == ["woken"], "the one before is not listened to any more"
    both.remove("gpus")
    both.remove("gpus")
    assert both.unknown() == frozenset()
    assert [i.workload for i in both.observe()] == [HERE]
    with pytest.raises(Error, match="compute gpus is not attached"):
        both.start(THERE, 0, 1, PROBE, PROBE)


def test_there_need_not_be_a_machine_of_our_own() -> None:
    with pytest.raises(Error, match="compute local is not attached"):
        CompositeRuntime().start(HERE, 0, 1, PROBE, PROBE)
