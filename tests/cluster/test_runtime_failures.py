"""Every way in which an instance fails on a real node, all at once: the code, the node's own words,
what to do, the event of the Deployment, and how soon. And one that does not fail: a container of
the user's own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from amphitrite.controlplane.core.desired.compute_clusters import BUILT_IN, PodShape
from amphitrite.controlplane.core.desired.containers import Container
from amphitrite.controlplane.core.desired.resources import PodSettings, WorkloadSpec, workload_spec
from amphitrite.controlplane.core.observed.observations import Fault, Instance
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import SERVER, WORKLOAD_LABEL
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_settings import KubernetesSettings, ModelCache

from ..controlplane.runtimes.kubernetes_subject import Pods
from ..controlplane.runtimes.model_source import CLOSED
from ..controlplane.runtimes.runtime_subjects import PROBE
from ..waiting import wait_until
from .images import Images
from .node import Cluster

pytestmark = [pytest.mark.serving, pytest.mark.cluster, pytest.mark.early]

GREEDY = """
class TritonPythonModel:
    def initialize(self, args):
        self.much = b"x" * (1 << 30)
    def execute(self, requests):
        return []
"""


@dataclass(frozen=True)
class Row:
    """``change``: of the settings that are right; ``model``: what is served. ``said``: in the
    fault's message."""

    name: str
    code: str
    said: str
    change: Callable[[KubernetesSettings], KubernetesSettings] = lambda settings: settings
    model: str = "good"
    lacks_capacity: bool = False


def shaped(**fields: object) -> Callable[[KubernetesSettings], KubernetesSettings]:
    shape = PodShape("small", (("cpu", "1m"), ("memory", "64Mi")), (("memory", "64Mi"),))
    return lambda settings: replace(settings, shape=lambda name: replace(shape, **fields))  # type: ignore[arg-type]


ROWS = (
    Row(
        "gpus",
        "PodUnschedulable",
        "Insufficient nvidia.com/gpu",
        shaped(limits=(("nvidia.com/gpu", "99"),)),
        lacks_capacity=True,
    ),
    Row(
        "selector",
        "PodUnschedulable",
        "didn't match Pod's node affinity/selector",
        shaped(scheduling={"nodeSelector": {"gpu": "none-such"}}),
    ),
    Row(
        "claim",
        "PodUnschedulable",
        'persistentvolumeclaim "absent" not found',
        lambda settings: replace(settings, cache=ModelCache("pvc", "absent")),
    ),
    Row(
        "image",
        "ImagePullLoopBackOff",
        "the image 127.0.0.1:1/tritonserver:none cannot be pulled",
        lambda settings: replace(settings, triton_image="127.0.0.1:1/tritonserver:none"),
    ),
    Row(
        "name",
        "ImagePullLoopBackOff",
        "couldn't parse image name",
        lambda settings: replace(settings, fetcher_image="Not An Image"),
    ),
    Row(
        "program",
        "KubernetesCrashLoopBackOff",
        "tritonserver",
        lambda settings: replace(settings, triton_image=settings.fetcher_image),
    ),
    Row("crash", "KubernetesCrashLoopBackOff", "failed to load 'tiny' version 1", model="broken"),
    Row("memory", "PodOutOfMemory", "it exceeded its memory limit of 320Mi", shaped(), model="greedy"),
    Row("model", "ResourceNotReady", "the model could not be downloaded", model="0" * 64),
    Row("grant", "ResourceNotReady", "the model could not be downloaded", model=CLOSED),
    Row(
        "forbidden",
        "InvalidDeploymentSpec",
        "violates PodSecurity",
        lambda settings: replace(settings, cache=ModelCache("hostPath", "/tmp")),
    ),
)


@pytest.fixture(scope="module")
def pods(cluster: Cluster, images: Images, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pods]:
    """Everything that fails has been started when the first test begins."""
    root = tmp_path_factory.mktemp("failures")
    model = root / "models" / "greedy" / "greedy" / "1"
    model.mkdir(parents=True)
    (model / "model.py").write_text(GREEDY)
    tensors = [f'{side} {{ name: "x" data_type: TYPE_FP32 dims: 1 }}' for side in ("input", "output")]
    config = "\n".join(['backend: "python"', "instance_group { count: 1 kind: KIND_CPU }", *tensors])
    (model.parent / "config.pbtxt").write_text(config)
    subject = Pods(cluster, root, (images.fetcher, images.triton))
    for row in ROWS:
        other = subject.open(row.change(subject.settings()))
        subject.until(lambda other=other: not other.unknown())
        other.start(spec(subject, row), 0, 1, PROBE, PROBE)
        other.close()
    subject.runtime.start(contained(subject), 0, 1, PROBE, PROBE)
    yield subject
    subject.close()


def contained(pods: Pods) -> WorkloadSpec:
    """An environment with NVIDIA's image, with another port and another readiness route than
    ours."""
    image, routes = pods.settings().triton_image, ("/v2/health/live", "/v2/models/tiny/ready", "/")
    container = Container(image, 8010, *routes, model_dir="/models", folder="good", repository="good")
    return workload_spec(
        "ep",
        "contained",
        pods.workload().model,
        "small",
        {},
        BUILT_IN,
        PodSettings(model_mount_path="/models"),
        container,
    )


def spec(pods: Pods, row: Row) -> WorkloadSpec:
    return pods.workload(row.model, deployment=row.name)


def faults(pods: Pods, row: Row) -> list[Fault]:
    found = [i.fault for i in pods.runtime.observe() if i.workload == spec(pods, row) and i.phase != "exited"]
    return [
        fault for fault in found if fault is not None and (fault.code, row.said in fault.message) == (row.code, True)
    ]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_failure_is_told_in_azures_code_and_kubernetes_words(pods: Pods, row: Row) -> None:
    pods.until(lambda: bool(faults(pods, row)))
    (fault,) = faults(pods, row)
    assert fault.hint
    assert fault.lacks_capacity == row.lacks_capacity
    subject = spec(pods, row).name
    pods.until(lambda: row.said in told(pods, subject, row.code))


def test_a_container_of_ones_own_among_them_serves(pods: Pods) -> None:
    wanted = contained(pods)
    pods.until(lambda: any(i.workload == wanted and i.phase == "ready" for i in pods.runtime.observe()))
    (serving,) = [i for i in pods.runtime.observe() if i.workload == wanted]
    assert serving.address is not None
    assert serving.address.port == 8010
    said = 'ls "$AZUREML_MODEL_DIR/good" && echo "$AZUREML_MODEL_DIR"'
    where = ("exec", "-n", pods.namespace, serving.id, "-c", SERVER, "--", "sh", "-c", said)
    assert pods.cluster.kubectl(*where).split() == ["tiny", "/models"]


def told(pods: Pods, deployment: str, reason: str) -> str:
    """What the Deployment's events of this reason say."""
    wanted = {"involvedObject.kind": "Deployment", "involvedObject.name": deployment, "reason": reason}
    selector = ",".join(f"{field}={value}" for field, value in wanted.items())
    found = pods.cluster.kubectl("get", "events", "-n", pods.namespace, "-o", "json", f"--field-selector={selector}")
    return "\n".join(event["message"] for event in json.loads(found)["items"])


def test_a_pod_that_its_node_has_ended_goes_with_its_workload(pods: Pods) -> None:
    """A failed pod stays as a record while its successor serves. Nobody but the workload's end
    removes it."""
    workload = pods.workload(deployment="ended")

    def mine(*phases: str) -> list[Instance]:
        return [i for i in pods.runtime.observe() if i.workload == workload and i.phase in phases]

    pods.runtime.start(workload, 0, 1, PROBE, PROBE)
    pods.until(lambda: bool(mine("ready")))
    (first,) = mine("ready")
    deadline = json.dumps({"spec": {"activeDeadlineSeconds": 1}})
    pods.cluster.kubectl("patch", "pod", first.id, "-n", pods.namespace, "-p", deadline)
    pods.until(lambda: bool(mine("exited")) and [i.id for i in mine("ready")] != [first.id])
    pods.until(lambda: bool(mine("ready")))
    pods.runtime.stop(mine("ready")[0].id, 0)
    pods.until(lambda: not mine("ready", "stopping"))
    left = ("get", "deployments,pods", "-n", pods.namespace, "-l", f"{WORKLOAD_LABEL}={workload.name}", "-o", "name")
    wait_until(lambda: not pods.cluster.kubectl(*left).split(), "its objects are gone")


def test_a_namespace_that_is_full(cluster: Cluster, images: Images, tmp_path: Path) -> None:
    subject = Pods(cluster, tmp_path, (images.fetcher, images.triton))
    try:
        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "full"},
            "spec": {"hard": {"requests.memory": "1Mi"}},
        }
        cluster.kubectl("create", "-n", subject.namespace, "-f", "-", stdin=json.dumps(quota))
        subject.runtime.start(subject.workload(), 0, 1, PROBE, PROBE)
        subject.until(lambda: any(i.fault for i in subject.runtime.observe()))
        (instance,) = subject.runtime.observe()
        assert instance.fault is not None
        assert instance.fault.code == "OutOfQuota"
        assert "exceeded quota: full" in instance.fault.message
        assert instance.id not in instance.fault.message, "no name of a pod that will be another one the next time"
        cluster.kubectl("delete", "resourcequota", "full", "-n", subject.namespace)
    finally:
        subject.close()


def test_a_server_that_does_not_answer_any_more(cluster: Cluster, images: Images, tmp_path: Path) -> None:
    """Seconds until it is told, and that it serves again when it answers again."""
    subject = Pods(cluster, tmp_path, (images.fetcher, images.triton))
    try:
        subject.runtime.start(subject.workload(), 0, 1, PROBE, PROBE)
        subject.until(lambda: [i.phase for i in subject.runtime.observe()] == ["ready"])
        (ready,) = subject.runtime.observe()
        began = time.monotonic()
        subject.freeze(ready.id)
        subject.until(lambda: [i.phase for i in subject.runtime.observe()] == ["unready"])
        print(f"seen after {time.monotonic() - began:.1f} s")
        subject.until(lambda: "Readiness probe failed" in str(subject.runtime.observe()[0].fault))
        (unready,) = subject.runtime.observe()
        assert unready.fault is not None
        assert unready.fault.code == "ResourceNotReady"
        subject.thaw(ready.id)
        subject.until(lambda: [i.phase for i in subject.runtime.observe()] == ["ready"])
        assert subject.runtime.observe()[0].fault is None
    finally:
        subject.close()
