"""Instances in a namespace of their own: a model is served from there, and whoever has the control
plane's rights cannot reach the release's Secrets. A release that has instances beside it keeps them
there over an upgrade."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress

import pytest
from kubernetes import client

from ..helm.chart import CHART
from ..system.models import REQUEST, adding
from ..waiting import wait_until
from .images import Images
from .node import Cluster
from .release import NAME, Release, installed

pytestmark = pytest.mark.cluster

VALUES = (
    *("--set", "controlplane.replicas=1", "--set", "dataplane.replicas=1"),
    *("--set", "database.existingSecret.name=somewhere", "--set", "models.s3.bucket=models"),
    *("--set", "rbac.clusterCapacity=false", "--set", "uninstall.deleteDeployments=false"),
    *("--set", "images.controlplane.pullPolicy=Never", "--set", "images.dataplane.pullPolicy=Never"),
)


def theirs(namespace: str) -> str:
    return f"{namespace}-{NAME}-instances"


def remove(cluster: Cluster, namespace: str) -> None:
    """The namespace that a release leaves."""
    with suppress(client.ApiException):
        cluster.core.delete_namespace(namespace)


def may(
    cluster: Cluster, release: str, namespace: str, verb: str, resource: str, group: str = "", name: str = ""
) -> bool:
    """Whether the control plane's account may."""
    of = {"namespace": namespace, "group": group, "resource": resource, "verb": verb, "name": name}
    asked = {"user": f"system:serviceaccount:{release}:{NAME}-controlplane", "resourceAttributes": of}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": asked}
    reviews = client.AuthorizationV1Api(cluster.api)
    return bool(reviews.create_subject_access_review(review).status.allowed)


@pytest.fixture(scope="module")
def release(cluster: Cluster, images: Images, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    files = tmp_path_factory.mktemp("release")
    with installed(cluster, images, files, instances={"namespace": ""}, modelCache={"type": "emptyDir"}) as release:
        try:
            yield release
        finally:
            namespace = theirs(release.namespace)
    left = cluster.apps.list_namespaced_deployment(namespace).items
    assert left == [], "helm uninstall ends the instances there, too"
    remove(cluster, namespace)


@pytest.mark.serving
def test_a_model_is_served_from_the_namespace_of_the_instances(release: Release) -> None:
    path = str(adding(release.files / "tiny", 1))
    release.run("model", "create", "-n", "tiny", "-v", "1", "-t", "triton_model", "-p", path)
    release.endpoint()
    release.deploy("blue", "tiny:1", "--all-traffic", environment_variables={"PASSWORD": "correct horse"})
    with release.load("/endpoints/cats/v2/models/tiny/infer", REQUEST, at_least=20) as result:
        pass
    assert result["failed"] == 0, result
    core, selector = release.cluster.core, "app.kubernetes.io/component=instance"
    assert core.list_namespaced_pod(release.namespace, label_selector=selector).items == []
    (pod,) = core.list_namespaced_pod(theirs(release.namespace), label_selector=selector).items
    assert pod.spec.automount_service_account_token is False
    logs = release.run("online-deployment", "get-logs", "-n", "blue", "-e", "cats").stdout
    assert "tiny" in logs


@pytest.mark.parametrize(
    ("verb", "resource", "group"),
    [
        ("create", "deployments", "apps"),
        ("create", "pods", ""),
        ("create", "secrets", ""),
        ("get", "secrets", ""),
        ("list", "secrets", ""),
        ("patch", "secrets", ""),
        ("create", "rolebindings", "rbac.authorization.k8s.io"),
        ("create", "serviceaccounts/token", ""),
    ],
)
def test_the_control_plane_reaches_no_secret_of_the_release(
    release: Release, verb: str, resource: str, group: str
) -> None:
    assert not may(
        release.cluster, release.namespace, release.namespace, verb, resource, group, "amphitrite-credentials"
    )


def test_the_namespace_takes_restricted_pods_alone(release: Release) -> None:
    """Also from the control plane's own account: a Deployment may be made, its pod may not."""
    namespace = theirs(release.namespace)
    assert may(release.cluster, release.namespace, namespace, "create", "deployments", "apps")
    assert not may(release.cluster, release.namespace, namespace, "get", "secrets")
    container = {"name": "c", "image": "i", "securityContext": {"privileged": True}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    with pytest.raises(AssertionError, match=r'violates PodSecurity "restricted'):
        release.cluster.kubectl("create", "-n", namespace, "--dry-run=server", "-f", "-", stdin=json.dumps(pod))


def test_a_release_with_instances_beside_it_keeps_them_there(cluster: Cluster, namespace: str) -> None:
    def chosen() -> str:
        manifest = cluster.helm("get", "manifest", NAME, "--namespace", namespace)
        (line,) = [line for line in manifest.splitlines() if "ML_KUBERNETES_NAMESPACE" in line]
        return line.partition("value: ")[2].rstrip("}")

    def install(verb: str, *more: str) -> None:
        cluster.helm(verb, NAME, str(CHART), *VALUES, *more, "--namespace", namespace)

    try:
        install("install", "--set", f"instances.namespace={namespace}")
        labels = {"app.kubernetes.io/instance": NAME, "app.kubernetes.io/managed-by": "amphitrite"}
        labels |= {"app.kubernetes.io/component": "instance"}
        container = {"name": "inference-server", "image": "i"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
        cluster.apps.create_namespaced_deployment(
            namespace, {"metadata": {"name": "w", "labels": labels}, "spec": spec}
        )
        install("upgrade", "--reset-values")
        assert chosen() == namespace
        cluster.apps.delete_namespaced_deployment("w", namespace)
        wait_until(lambda: "w" not in deployments(cluster, namespace), "the workload is gone")
        install("upgrade", "--reset-values")
        assert chosen() == theirs(namespace)
        assert cluster.core.read_namespace(theirs(namespace)).metadata.labels is not None
    finally:
        cluster.helm("uninstall", NAME, "--namespace", namespace, check=False)
        remove(cluster, theirs(namespace))


def deployments(cluster: Cluster, namespace: str) -> set[str]:
    return {one.metadata.name for one in cluster.apps.list_namespaced_deployment(namespace).items}
