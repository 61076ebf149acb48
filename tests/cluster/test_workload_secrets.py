"""What a user sets in ``environment_variables`` reaches the container, and is in no object that is
not a Secret: also not in those that an earlier release has made, whose pods run on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amphitrite.controlplane.core.desired.compute_clusters import BUILT_IN
from amphitrite.controlplane.core.desired.resources import PodSettings, WorkloadSpec, is_complete, workload_spec
from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.runtimes.kubernetes.workloads import workload_manifests
from amphitrite.controlplane.runtimes.kubernetes.workloads.grants import GRANT_VARIABLE
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import SERVER, SPEC_ANNOTATION, object_name

from ..controlplane.runtimes.kubernetes_subject import Pods
from ..controlplane.runtimes.model_source import GRANT
from ..controlplane.runtimes.runtime_subjects import PROBE
from ..waiting import wait_until
from .images import Images
from .node import Cluster

pytestmark = [pytest.mark.serving, pytest.mark.cluster]

PASSWORD = "correct horse $(HOME) battery"
#: Every kind that the runtime writes, and those that controllers derive from them.
KINDS = "deployments,replicasets,pods,configmaps,services,networkpolicies,events"


@pytest.fixture
def pods(cluster: Cluster, images: Images, tmp_path: Path) -> Iterator[Pods]:
    subject = Pods(cluster, tmp_path, (images.fetcher, images.triton))
    yield subject
    subject.close()


def workload(pods: Pods, deployment: str) -> WorkloadSpec:
    model = pods.workload().model
    return workload_spec("ep", deployment, model, "small", {"PASSWORD": PASSWORD}, BUILT_IN, PodSettings())


def ready(pods: Pods, wanted: WorkloadSpec) -> Instance:
    def found() -> list[Instance]:
        return [i for i in pods.runtime.observe() if i.workload == wanted and i.phase == "ready"]

    pods.until(lambda: bool(found()))
    (instance,) = found()
    return instance


def printed(pods: Pods, instance: Instance, variable: str) -> str:
    return pods.cluster.kubectl("exec", "-n", pods.namespace, instance.id, "-c", SERVER, "--", "printenv", variable)


def everything(pods: Pods) -> str:
    return pods.cluster.kubectl("get", KINDS, "-n", pods.namespace, "-o", "json", "--show-managed-fields")


def test_variables_and_grant_are_in_a_secret_alone(pods: Pods) -> None:
    wanted = workload(pods, "blue")
    pods.runtime.start(wanted, 0, 1, PROBE, PROBE)
    instance = ready(pods, wanted)
    assert printed(pods, instance, "PASSWORD") == f"{PASSWORD}\n"
    text = everything(pods)
    assert instance.id in text
    assert PASSWORD not in text
    assert GRANT not in text
    assert not is_complete(instance.workload), "what was read from the cluster has no variables"


def test_what_an_earlier_release_has_made_loses_them_and_no_pod(pods: Pods) -> None:
    wanted = workload(pods, "earlier")
    deployment = earlier(pods, wanted)
    kubectl(pods, "create", deployment)
    uid = find(pods, "deployment", wanted)["metadata"]["uid"]
    owner = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": object_name(wanted), "uid": uid}]
    record = {"name": object_name(wanted), "ownerReferences": owner}
    data = {"workload.json": deployment["metadata"]["annotations"][SPEC_ANNOTATION], "ca.crt": "an authority"}
    kubectl(pods, "create", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": record, "data": data})
    pods.cluster.kubectl("scale", "deployment", object_name(wanted), "-n", pods.namespace, "--replicas=1")
    instance = ready(pods, wanted)

    def left() -> str:
        objects = json.loads(pods.cluster.kubectl("get", "deployments,replicasets,configmaps", *json_of(pods)))["items"]
        return json.dumps([[one["metadata"].get("annotations"), one.get("data")] for one in objects])

    wait_until(lambda: json.dumps(PASSWORD).strip('"') not in left(), "no object has the password", detail=left)
    assert "an authority" in left(), "what the pod has mounted stays"
    revision = find(pods, "deployment", wanted)["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
    assert revision == "1", "nothing was rolled out"
    assert ready(pods, wanted).id == instance.id
    assert printed(pods, instance, "PASSWORD") == f"{PASSWORD}\n"


def test_a_grant_is_renewed_in_the_secret_and_the_next_fetch_has_it(pods: Pods) -> None:
    """As when it has ended, months after the Deployment was made."""
    wanted = workload(pods, "renewed")
    before = pods.open(replace(pods.settings(), grant=lambda _: "Bearer v1.ended"))
    pods.runtime.close()
    try:
        pods.until(lambda: not before.unknown())
        before.start(wanted, 0, 1, PROBE, PROBE)
        pods.until(lambda: any(i.fault for i in before.observe()))
    finally:
        before.close()
    pods.runtime = pods.open()
    pods.until(lambda: not pods.runtime.unknown())
    instance = ready(pods, wanted)
    assert instance.attempt > 1, "the same pod, whose fetcher was refused before"
    assert printed(pods, instance, "PASSWORD") == f"{PASSWORD}\n", "the rest of the Secret stays"


def earlier(pods: Pods, wanted: WorkloadSpec) -> dict[str, Any]:
    """The Deployment as releases until 0.2 made it."""
    settings = pods.settings()
    made = workload_manifests.deployment(wanted, settings, 5.0)
    annotations = made["metadata"]["annotations"]
    recorded = json.loads(annotations[SPEC_ANNOTATION])
    annotations[SPEC_ANNOTATION] = json.dumps({**recorded, "environment_variables": [["PASSWORD", PASSWORD]]})
    literal = {"PASSWORD": PASSWORD.replace("$(", "$$("), GRANT_VARIABLE: GRANT}
    pod = made["spec"]["template"]["spec"]
    for container in (*pod["initContainers"], *pod["containers"]):
        container["env"] = [
            {"name": e["name"], "value": literal[e["name"]]} if e["name"] in literal else e for e in container["env"]
        ]
    return made


def json_of(pods: Pods) -> tuple[str, ...]:
    return ("-n", pods.namespace, "-o", "json")


def find(pods: Pods, kind: str, wanted: WorkloadSpec) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(pods.cluster.kubectl("get", kind, object_name(wanted), *json_of(pods)))
    return found


def kubectl(pods: Pods, verb: str, manifest: dict[str, Any]) -> None:
    pods.cluster.kubectl(verb, "-n", pods.namespace, "-f", "-", stdin=json.dumps(manifest))
