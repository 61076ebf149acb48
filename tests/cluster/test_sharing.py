"""One cluster for all processes of a test run: who starts it, and who ends it. Nothing here needs a
cluster."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from .node import Cluster, one_node

pytestmark = pytest.mark.cluster

#: Keeps the promises that are leant on: `up` makes the files of a running cluster, `down` takes
#: them away.
KUBE = """#!/bin/sh
echo "$1" >>{0}/told
case $1 in
up) touch {0}/kube/admin.kubeconfig {0}/kube/pid ;;
down) rm {0}/kube/admin.kubeconfig {0}/kube/pid ;;
esac
"""
KUBECTL = """#!/bin/sh
[ -e {0}/broken ] || printf ok
"""


@pytest.fixture
def kube(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "kube" / "bin").mkdir(parents=True)
    for path, text in ((tmp_path / "command", KUBE), (tmp_path / "kube" / "bin" / "kubectl", KUBECTL)):
        path.write_text(text.format(tmp_path))
        path.chmod(0o755)
    yield tmp_path / "command"


def test_nobody_is_there_who_must_be_alone(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "kubeconfig", tmp_path / "kube", None)
    there: list[str] = []

    def alone(_: int) -> list[str]:
        with cluster.turn(alone=True):
            there.append("alone")
            seen = list(there)
            there.remove("alone")
        return seen

    with ThreadPoolExecutor(4) as pool:
        with cluster.turn(), cluster.turn():
            there.append("another")
            waiting = [pool.submit(alone, number) for number in range(4)]
            there.remove("another")
        assert [future.result(60) for future in waiting] == [["alone"]] * 4


def told(kube: Path) -> list[str]:
    path = kube.parent / "told"
    return path.read_text().split() if path.exists() else []


def test_the_first_one_in_starts_it_and_the_last_one_out_ends_it(kube: Path) -> None:
    barrier = Barrier(4, timeout=60)

    def use(_: int) -> list[str]:
        with one_node(kube, kube.parent / "kube"):
            barrier.wait()
            seen = told(kube)
            barrier.wait()
        return seen

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(use, range(4))) == [["up"]] * 4
    assert told(kube) == ["up", "down"]


def test_a_cluster_that_runs_already_is_left_running(kube: Path) -> None:
    for name in ("admin.kubeconfig", "pid"):
        (kube.parent / "kube" / name).touch()
    with one_node(kube, kube.parent / "kube"):
        assert told(kube) == []
    assert told(kube) == []


def test_one_that_does_not_answer_is_started_anew(kube: Path) -> None:
    for name in ("admin.kubeconfig", "pid"):
        (kube.parent / "kube" / name).touch()
    (kube.parent / "broken").touch()
    with one_node(kube, kube.parent / "kube"):
        assert told(kube) == ["up"]


def test_what_a_killed_run_left_is_used_and_ended(kube: Path) -> None:
    for name in ("admin.kubeconfig", "pid"):
        (kube.parent / "kube" / name).touch()
    (kube.parent / "kube.tests").mkdir()
    (kube.parent / "kube.tests" / "started").touch()
    with one_node(kube, kube.parent / "kube"):
        assert told(kube) == []
    assert told(kube) == ["down"]
