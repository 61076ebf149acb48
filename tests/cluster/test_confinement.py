"""What a model's code can do in its pod on a real node: what it may write and how much, as whom it
runs, and that the namespace takes no pod that may do more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import SERVER

from ..controlplane.runtimes.kubernetes_subject import Pods
from ..controlplane.runtimes.runtime_subjects import PROBE
from .images import Images
from .node import Cluster

pytestmark = [pytest.mark.serving, pytest.mark.cluster]


@pytest.fixture(scope="module")
def pods(cluster: Cluster, images: Images, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pods]:
    subject = Pods(cluster, tmp_path_factory.mktemp("confinement"), (images.fetcher, images.triton))
    yield subject
    subject.close()


@pytest.fixture(scope="module")
def instance(pods: Pods) -> Instance:
    pods.runtime.start(pods.workload(), 0, 1, PROBE, PROBE)
    pods.until(lambda: [i.phase for i in pods.runtime.observe()] == ["ready"])
    (ready,) = pods.runtime.observe()
    return ready


def said(pods: Pods, instance: Instance, script: str) -> str:
    """By a shell beside the server, as the model's code could start one."""
    command = ("exec", "-n", pods.namespace, instance.id, "-c", SERVER, "--", "sh", "-c", f"exec 2>&1; {script}; true")
    return pods.cluster.kubectl(*command)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo x >/x", "Read-only file system"),
        ("echo x >/mnt/models/x", "Read-only file system"),
        ("head -c 400M /dev/zero >/dev/shm/x; rm /dev/shm/x", "No space left on device"),
        ("ls /var/run/secrets/kubernetes.io", "No such file or directory"),
        ("id -u", "1000"),
        ("grep CapBnd /proc/self/status", "0000000000000000"),
        ("grep NoNewPrivs /proc/self/status", "1"),
        ("grep Seccomp: /proc/self/status", "2"),
        ("df -k /tmp >/dev/null && echo x >/tmp/x && cat /tmp/x", "x"),
    ],
)
def test_what_the_code_of_a_model_may_do(pods: Pods, instance: Instance, script: str, expected: str) -> None:
    assert said(pods, instance, script).strip().endswith(expected)


def test_the_namespace_takes_no_pod_that_may_do_more(pods: Pods) -> None:
    container = {"name": "c", "image": "i", "securityContext": {"privileged": True}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    answer = pods.cluster.kubectl(
        "create", "-n", pods.namespace, "--dry-run=server", "-o", "name", "-f", "-", stdin=json.dumps(pod), check=False
    )
    assert "pod/p" not in answer


def test_who_fills_the_disk_is_evicted(cluster: Cluster, images: Images, tmp_path: Path) -> None:
    if not all("ephemeral-storage" in node.status.allocatable for node in cluster.core.list_node().items):
        pytest.skip(
            "the kubelets of this cluster do not count local storage; use one with localStorageCapacityIsolation"
        )
    pods = Pods(cluster, tmp_path, (images.fetcher, images.triton))
    small = pods.open(replace(pods.settings(), scratch_bytes=16 * 1024**2))
    try:
        pods.until(lambda: not small.unknown())
        small.start(pods.workload(), 0, 1, PROBE, PROBE)
        pods.until(lambda: [i.phase for i in small.observe()] == ["ready"])
        said(pods, small.observe()[0], "head -c 64M /dev/zero >/tmp/x")
        pods.until(lambda: any("Evicted" in (i.reason or "") for i in small.observe()))
    finally:
        small.close()
        pods.close()
