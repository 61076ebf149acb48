"""Computes over HTTP, and endpoints and deployments that run on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amphitrite.controlplane.core.capacity.node_capacity import NodeCapacity, PodDemand
from amphitrite.controlplane.core.desired.compute_clusters import Compute, PodShape
from amphitrite.controlplane.core.desired.instance_types import GPU
from amphitrite.schemas import wire
from amphitrite.schemas.errors import Error

from .conftest import opened

WS = "/subscriptions/local/resourceGroups/local/providers/Microsoft.MachineLearningServices/workspaces/local"
K8S = f"{WS}/computes/k8s"
BLUE = f"{WS}/onlineEndpoints/ep1/deployments/blue"
KUBECONFIG = """
clusters: [{name: c, cluster: {server: "https://cluster", certificate-authority-data: eA==}}]
users: [{name: u, user: {token: very-secret}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""
ONE_GPU = {"resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {GPU: "1"}}}


def compute_body(**inner: Any) -> dict[str, Any]:
    kubernetes = {"namespace": "models", "kubeconfig": KUBECONFIG, "instanceTypes": {"one-gpu": ONE_GPU}, **inner}
    properties = {name: value for name, value in kubernetes.items() if value is not None}
    return {"location": "local", "properties": {"computeType": "Kubernetes", "properties": properties}}


def node(name: str, used: int, gpus: int = 4) -> NodeCapacity:
    pods = (PodDemand("cats/blue", {GPU: str(used)}),) if used else ()
    return NodeCapacity(name, {"cpu": "8", "memory": "64Gi", GPU: str(gpus), "ephemeral-storage": "1Gi"}, pods)


@pytest.fixture
def attached(world: Any) -> Any:
    """A model, compute ``k8s`` with four free GPUs, and endpoint ``ep1`` on it."""
    world.model()
    assert world.client.put(K8S, json=compute_body()).status_code == 201
    world.clusters.nodes["k8s"] = (node("node-1", 0),)
    assert world.endpoint(compute=K8S).status_code == 201
    return world


@pytest.fixture
def in_cluster(tmp_path: Path) -> Iterator[Any]:
    """A server that brings a cluster along."""
    types = (PodShape("Standard_NC6s_v3", ((GPU, "1"), ("cpu", "100m")), ((GPU, "1"),)),)
    with opened(tmp_path / "home", Compute("kubernetes", "serving", None, types)) as world:
        world.model()
        world.endpoint()
        yield world


def put(world: Any, name: str = "blue", count: int = 1, policy: str | None = None, **properties: Any) -> Any:
    said = {"properties": {"amphitrite.capacity_policy": policy}} if policy else {}
    kind = {"endpointComputeType": "Kubernetes", "instanceType": "one-gpu"}
    return world.deployment(name, count=count, **{**kind, **said, **properties})


def test_attaching_asks_the_cluster_and_shows_no_secret(world: Any) -> None:
    answer = world.client.put(K8S, json=compute_body())
    assert answer.status_code == 201
    (asked,) = world.clusters.asked
    assert (asked.name, asked.namespace, asked.kubeconfig.reveal()) == ("k8s", "models", KUBECONFIG)
    body = world.client.get(K8S.replace("k8s", "K8S")).json()
    assert body == answer.json()
    assert body["properties"] == {
        "computeType": "Kubernetes",
        "isAttachedCompute": True,
        "provisioningState": "Succeeded",
        "properties": {
            "namespace": "models",
            "defaultInstanceType": "defaultinstancetype",
            "inCluster": False,
            "instanceTypes": {
                "one-gpu": {
                    "resources": {
                        "requests": {"cpu": "100m", "memory": "1Gi", GPU: "1"},
                        "limits": {"memory": "1Gi", GPU: "1"},
                    }
                }
            },
        },
    }
    assert "very-secret" not in world.client.get(f"{WS}/computes").text
    assert [c["name"] for c in world.client.get(f"{WS}/computes").json()["value"]] == ["local", "k8s"]
    assert len(world.wakes) == 1


def test_conditions_of_writes_hold(world: Any) -> None:
    client = world.client
    assert client.put(K8S, json=compute_body(), headers={"If-Match": "*"}).status_code == 412
    first = client.put(K8S, json=compute_body(), headers={"If-None-Match": "*"}).headers["ETag"]
    assert client.get(K8S).headers["ETag"] == first
    assert client.put(K8S, json=compute_body(), headers={"If-None-Match": "*"}).status_code == 412
    changed = client.put(K8S, json=compute_body(defaultInstanceType="one-gpu"), headers={"If-Match": first})
    assert (changed.status_code, changed.headers["ETag"] != first) == (200, True)
    for request in (client.put(K8S, json=compute_body(), headers={"If-Match": first}),
                    client.delete(K8S, headers={"If-Match": first})):  # fmt: skip
        assert (request.status_code, request.json()["error"]["code"]) == (412, "PreconditionFailed")
    assert client.get(K8S).json()["properties"]["properties"]["defaultInstanceType"] == "one-gpu"
    # The kubeconfig is part of what has changed, though no answer shows it.
    secret = client.put(K8S, json=compute_body(kubeconfig=KUBECONFIG.replace("very-", "more-")))
    assert secret.headers["ETag"] not in (first, changed.headers["ETag"])
    assert client.delete(K8S, headers={"If-Match": secret.headers["ETag"]}).status_code == 200


def test_a_change_during_the_check_of_the_cluster_is_not_overwritten(world: Any) -> None:
    read = world.client.put(K8S, json=compute_body()).headers["ETag"]
    faster = compute_body(defaultInstanceType="one-gpu")
    world.clusters.meanwhile = lambda: world.client.put(K8S, json=faster)
    body = compute_body(kubeconfig=KUBECONFIG.replace("very-", "more-"))
    assert world.client.put(K8S, json=body, headers={"If-Match": read}).status_code == 412
    found = world.client.get(K8S).json()["properties"]["properties"]
    assert found["defaultInstanceType"] == "one-gpu"


def test_a_cluster_that_cannot_be_used_is_not_stored(world: Any) -> None:
    world.clusters.refusal = Error("NamespaceNotFound", "there is no namespace models", hint="create it")
    answer = world.client.put(K8S, json=compute_body())
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "NamespaceNotFound")
    assert world.client.get(K8S).status_code == 404


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "has no clusters"),
        ("{", "is not YAML"),
        (KUBECONFIG.replace("current-context: x", "current-context: y"), "has a current-context that is not one"),
        (KUBECONFIG.replace("token: very-secret", "exec: {command: sh}"), "gets credentials from a program (exec)"),
        (KUBECONFIG.replace("token: very-secret", "tokenFile: /etc/token"), "names a file (tokenFile)"),
        (KUBECONFIG.replace("certificate-authority-data: eA==", "certificate-authority: ca.pem"), "names a file"),
        (KUBECONFIG + "#" * 300_000, "characters; at most 262144 are allowed"),
    ],
)
def test_a_kubeconfig_that_would_run_or_read_something_here_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with opened(tmp_path / "home", ML_LIMIT_JSON_BODY_BYTES="1000000") as world:
        error = world.client.put(K8S, json=compute_body(kubeconfig=text)).json()["error"]
        assert message in error["message"]
        assert "very-secret" not in str(error)
        assert world.clusters.asked == []


@pytest.mark.parametrize(
    ("inner", "outer", "target"),
    [
        ({"kubeconfig": None}, {}, "kubeconfig"),
        ({"inCluster": True}, {}, "in_cluster"),
        ({"namespace": None}, {}, "namespace"),
        ({"namespace": "Models"}, {}, "namespace"),
        ({"defaultInstanceType": "two-gpus"}, {}, "default_instance_type"),
        ({"instanceTypes": {"a": {"resources": {"requests": {"cpu": "x"}}}}}, {}, "instance_types[0]"),
        ({}, {"resourceId": "/subscriptions/s/managedClusters/c"}, "resource_id"),
        ({}, {"computeType": "AmlCompute"}, "type"),
    ],
)
def test_what_is_wrong_is_named(world: Any, inner: Any, outer: Any, target: str) -> None:
    body = compute_body(**inner)
    body["properties"] |= outer
    error = world.client.put(K8S, json=body).json()["error"]
    assert error["code"] == "InvalidDocument"
    assert error["details"][0]["target"].startswith(target)


def test_what_get_answers_can_be_put_again_and_keeps_the_secret(attached: Any) -> None:
    before = attached.client.get(K8S).json()
    assert attached.client.put(K8S, json=before).json() == before
    (stored,) = attached.store.list_computes()
    assert stored.kubeconfig.reveal() == KUBECONFIG
    assert len(attached.clusters.asked) == 1


def test_attaching_does_not_overwrite_and_built_in_names_are_taken(attached: Any) -> None:
    answer = attached.client.put(K8S, json=compute_body(), headers={"If-None-Match": "*"})
    assert answer.status_code == 412
    for name in ("local", "Kubernetes"):
        answer = attached.client.put(f"{WS}/computes/{name}", json=compute_body())
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "Conflict")
        assert attached.client.delete(f"{WS}/computes/{name}").status_code == 409


def test_what_is_used_is_not_detached(attached: Any) -> None:
    answer = attached.client.delete(K8S, params={"underlyingResourceAction": "Detach"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "Conflict")
    assert "ep1" in answer.json()["error"]["message"]
    attached.client.delete(f"{WS}/onlineEndpoints/ep1")
    attached.settle()
    assert attached.client.delete(K8S, params={"underlyingResourceAction": "Delete"}).status_code == 400
    assert attached.client.delete(K8S).status_code == 200
    assert attached.client.delete(K8S).status_code == 204
    assert attached.client.get(K8S).status_code == 404


def test_an_instance_type_that_a_deployment_names_stays(attached: Any) -> None:
    assert put(attached).status_code == 201
    answer = attached.client.put(K8S, json=compute_body(instanceTypes={}, kubeconfig=None))
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "Conflict")
    assert "one-gpu is used by ep1/blue" in answer.json()["error"]["message"]


def test_nodes_and_what_is_free_of_them(attached: Any) -> None:
    attached.clusters.nodes["k8s"] = (node("node-1", 3), node("node-2", 0, gpus=0))
    body = attached.client.post(f"{K8S}/listNodes").json()
    assert body["gpus"] == {"total": 4, "used": 3, "free": 1}
    assert body["nodes"][0] == {
        "nodeId": "node-1",
        "nodeState": "running",
        "gpus": {"total": 4, "used": 3, "free": 1},
        "resources": {
            "cpu": {"total": "8", "free": "8"},
            "memory": {"total": "64 GiB", "free": "64 GiB"},
            GPU: {"total": "4", "free": "1"},
        },
    }
    assert body["nodes"][1]["nodeState"] == "idle"
    shown = wire.show_compute(attached.client.get(K8S).json(), body)
    assert (shown["gpus"], shown["nodes"][0]["node_id"]) == (body["gpus"], "node-1")


def test_nodes_that_nobody_knows(attached: Any) -> None:
    attached.clusters.nodes.clear()
    assert attached.client.post(f"{K8S}/listNodes").json()["error"]["code"] == "KubernetesUnaccessible"
    assert attached.client.post(f"{WS}/computes/local/listNodes").json()["error"]["code"] == "Unsupported"
    assert put(attached, count=9).status_code == 201
    attached.clusters.silent = True
    assert attached.client.post(f"{K8S}/listNodes").status_code == 503
    assert put(attached, "green", count=9).status_code == 201


def test_sizes(attached: Any) -> None:
    sizes = {size["name"]: size for size in attached.client.get(f"{K8S}/vmSizes").json()["value"]}
    assert sizes["one-gpu"] | {"requests": None, "limits": None} == {
        "name": "one-gpu", "vCPUs": 0.1, "memoryGB": 1.0, "gpus": 1, "gpuClass": None, "origin": "compute",
        "requests": None, "limits": None,
    }  # fmt: skip
    assert sizes["Standard_NC6s_v3"]["gpuClass"] == "V100"
    here = attached.client.get(f"{WS}/computes/local/vmSizes").json()["value"]
    assert {
        "name": "Standard_NC6s_v3",
        "vCPUs": 6,
        "memoryGB": 112,
        "gpus": 1,
        "gpuClass": "V100",
        "origin": "azure",
    } in here


def test_an_endpoint_on_a_compute_is_a_kubernetes_endpoint(attached: Any) -> None:
    body = attached.client.get(f"{WS}/onlineEndpoints/ep1").json()
    assert (body["kind"], body["properties"]["compute"]) == ("K8S", K8S)
    assert "publicNetworkAccess" not in body["properties"]
    again = attached.client.put(f"{WS}/onlineEndpoints/ep1", json=body)
    assert (again.status_code, again.headers["ETag"]) == (
        200,
        attached.client.get(f"{WS}/onlineEndpoints/ep1").headers["ETag"],
    )
    error = attached.endpoint().json()["error"]
    assert error["message"] == "compute: cannot be changed after creation; the current value is azureml:k8s"
    error = attached.endpoint("ep2", compute=f"{WS}/computes/other").json()["error"]
    assert error["message"] == "compute: there is no compute other"
    assert attached.endpoint("ep2", compute=f"{WS}/computes/K8S").json()["properties"]["compute"] == K8S


def test_a_kubernetes_deployment(attached: Any) -> None:
    resources = {"containerResourceRequests": {"cpu": "2"}, "containerResourceLimits": {"gpu": "1"}}
    answer = put(attached, instanceType=None, containerResourceRequirements=resources, modelMountPath="/models")
    assert answer.status_code == 201, answer.text
    shown = answer.json()["properties"]
    assert (shown["endpointComputeType"], shown["instanceType"]) == ("Kubernetes", "defaultinstancetype")
    assert shown["containerResourceRequirements"] == resources
    assert "egressPublicNetworkAccess" not in shown
    assert put(attached, "green").json()["properties"]["containerResourceRequirements"] == {}
    record = attached.store.get_deployment("ep1", "blue")
    assert record.compute == "k8s"
    (wanted, _) = attached.store.load_world().deployments
    assert wanted.workload.compute == "k8s"
    assert wanted.workload.pod.limits == ((GPU, "1"),)
    before = attached.client.get(BLUE)
    again = attached.client.put(BLUE, json=before.json())
    assert (again.status_code, again.headers["ETag"]) == (200, before.headers["ETag"])


def test_resources_that_no_pod_can_have_are_refused(attached: Any) -> None:
    """The instance type's GPUs are limited to 1; the deployment's limit of memory is below what the
    type requests."""
    resources = {"containerResourceLimits": {"memory": "512Mi"}}
    answer = put(attached, containerResourceRequirements=resources)
    assert answer.json()["error"]["code"] == "InvalidDeploymentSpec"


def test_managed_deployments_run_where_the_server_does(in_cluster: Any) -> None:
    answer = in_cluster.deployment(modelMountPath="/models")
    assert answer.status_code == 201, answer.text
    assert in_cluster.store.get_deployment("ep1", "blue").compute == "kubernetes"
    shown = [compute["name"] for compute in in_cluster.client.get(f"{WS}/computes").json()["value"]]
    assert shown == ["kubernetes"]
    assert in_cluster.client.get(f"{WS}/computes/local").status_code == 404
    (nodes, body) = (node("node-1", 3),), in_cluster.client.get(f"{WS}/computes/kubernetes").json()
    assert body["properties"]["isAttachedCompute"] is False
    in_cluster.clusters.nodes["kubernetes"] = nodes
    assert in_cluster.deployment("green", count=2).json()["error"]["code"] == "OutOfQuota"


def test_what_does_not_fit_is_refused_before_anything_changes(attached: Any) -> None:
    assert put(attached, count=4).status_code == 201
    attached.clusters.nodes["k8s"] = (node("node-1", 4),)
    answer = put(attached, "green")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["target"]) == (400, "OutOfQuota", "ep1/green")
    assert error["message"] == (
        "1 instance of one-gpu needs 1 nvidia.com/gpu; 0 of 4 is free: node-1 has 4, 4 are requested by cats/blue"
    )
    hint = error["additionalInfo"][0]["info"]["hint"]
    assert "wait" in hint
    assert "drain-first" in hint
    assert attached.client.get(f"{WS}/onlineEndpoints/ep1/deployments/green").status_code == 404


#: 4 instances of blue hold all GPUs: (what changes) -> refused?
CHANGES: list[tuple[dict[str, Any], bool]] = [
    ({"count": 4}, False),
    ({"count": 2}, False),
    ({"count": 5}, True),
    ({"count": 4, "requestSettings": {"requestTimeout": "PT1S"}}, False),
    ({"count": 4, "environmentVariables": {"A": "b"}}, True),
    ({"count": 4, "livenessProbe": {"period": "PT30S"}}, True),
    ({"count": 4, "model": f"{WS}/models/m/versions/2"}, True),
]


@pytest.mark.parametrize(("change", "refused"), CHANGES)
def test_only_instances_that_are_added_need_room(attached: Any, change: dict[str, Any], refused: bool) -> None:
    attached.model(version="2")
    assert put(attached, count=4).status_code == 201
    attached.clusters.nodes["k8s"] = (node("node-1", 4),)
    assert (put(attached, **change).status_code == 400) == refused


@pytest.mark.parametrize(
    ("policy", "change", "says"),
    [
        ("wait", {"count": 5}, "; new instances wait until there is capacity (wait)"),
        (
            "wait",
            {"count": 4, "environmentVariables": {"A": "b"}},
            "; new instances wait until there is capacity (wait)",
        ),
        ("drain-first", {"count": 5}, "; new instances wait until there is capacity (drain-first)"),
        (
            "drain-first",
            {"count": 4, "environmentVariables": {"A": "b"}},
            "; old instances are drained one by one to free capacity (drain-first)",
        ),
    ],
)
def test_other_policies_say_first_what_will_happen(attached: Any, policy: str, change: Any, says: str) -> None:
    assert put(attached, count=4, policy=policy).status_code == 201
    attached.settle()
    attached.clusters.nodes["k8s"] = (node("node-1", 4),)
    answer = put(attached, policy=policy, **change)
    assert answer.status_code == 200
    operation = attached.client.get(answer.headers["Azure-AsyncOperation"]).json()
    (phase,) = operation["properties"]["phases"]
    assert (phase["name"], phase["message"].endswith(says)) == ("Waiting", True)
    assert phase["message"].startswith(f"{1 if change['count'] == 5 else 4} instance")
    assert operation["status"] == "InProgress"
