"""Namespaces of the tests' own, and volumes in them.

Decides their names and labels, and what may be left in one when a test is through. Must not know
what is tested.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kubernetes import client

from ..waiting import wait_until

if TYPE_CHECKING:
    from .node import Cluster

#: What every namespace has, and what nobody takes away.
_ALWAYS = {"configmap/kube-root-ca.crt", "serviceaccount/default"}
_NOT_OBJECTS = ("events", "events.events.k8s.io", "pods.metrics.k8s.io")


@contextmanager
def namespace(cluster: Cluster, *, prefix: str = "test", empty: bool = True) -> Iterator[str]:
    """A new namespace that enforces the Pod Security level ``restricted``; deleted afterwards, and
    its pods gone.

    ``empty``: a test that succeeds must have left nothing in it. Kubernetes takes some seconds more
    for the namespace itself: :func:`gone` waits for those of this process.
    """
    name = f"{prefix}-{uuid.uuid4().hex[:8]}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted", "amphitrite.io/test": _process()}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    cluster.core.create_namespace(body)
    try:
        wait_until(lambda: _ready(cluster, name), f"namespace {name} is ready")
        yield name
        if empty:
            wait_until(
                lambda: not leftovers(cluster, name),
                f"nothing is left in namespace {name}",
                detail=lambda: "\n".join(sorted(leftovers(cluster, name))),
            )
    finally:
        cluster.core.delete_namespace(name)
        # Now nobody can start pods anew, and they need not wait for the namespace's own turn.
        with contextlib.suppress(client.ApiException):
            cluster.core.delete_collection_namespaced_pod(name, grace_period_seconds=1)
        wait_until(
            lambda: not cluster.core.list_namespaced_pod(name).items,
            f"the pods of namespace {name} are gone",
            detail=lambda: cluster.kubectl("get", "pods", "-n", name, check=False),
        )


def gone(cluster: Cluster) -> None:
    """Waits until every namespace of this process is gone."""
    selector = f"amphitrite.io/test={_process()}"
    wait_until(
        lambda: not cluster.core.list_namespace(label_selector=selector).items,
        "the namespaces of the tests are gone",
        detail=lambda: cluster.kubectl("get", "namespaces", "-l", selector, "-o", "yaml"),
    )


def _process() -> str:
    return f"{socket.gethostname()[:40]}-{os.getpid()}"


def _ready(cluster: Cluster, name: str) -> bool:
    """Whether it has what Kubernetes puts into each."""
    core = cluster.core
    return bool(core.list_namespaced_config_map(name).items and core.list_namespaced_service_account(name).items)


def leftovers(cluster: Cluster, name: str) -> set[str]:
    """Every object in the namespace, as ``kind.group/name``, besides events and what each namespace
    has."""
    return set(cluster.kubectl("get", _kinds(cluster), "-n", name, "-o", "name").split()) - _ALWAYS


@functools.cache
def _kinds(cluster: Cluster) -> str:
    kinds = cluster.kubectl("api-resources", "--namespaced", "--verbs=list", "-o", "name").split()
    return ",".join(kind for kind in kinds if kind not in _NOT_OBJECTS)


@contextmanager
def shared_volume(cluster: Cluster, in_namespace: str, *, name: str = "shared", size: str = "1Gi") -> Iterator[str]:
    """A ReadWriteMany PersistentVolumeClaim in the namespace, bound, with everything in it deleted
    afterwards.

    On the one-node Kubernetes it is a directory of this machine (its volume tells the path), which
    every user may write; elsewhere the storage class that ``AMPHITRITE_TEST_STORAGE_CLASS`` names.
    """
    if cluster.own is None:
        storage_class = os.environ.get("AMPHITRITE_TEST_STORAGE_CLASS")
        if not storage_class:
            pytest.skip("AMPHITRITE_TEST_STORAGE_CLASS names no storage class for ReadWriteMany volumes")
        with _claim(cluster, in_namespace, name, {"storageClassName": storage_class}, size):
            yield name
        return
    directory = cluster.own / "volumes" / f"{in_namespace}-{name}"
    directory.mkdir(parents=True)
    directory.chmod(0o777)
    volume = f"{in_namespace}-{name}"
    cluster.core.create_persistent_volume(_volume(volume, directory, size))
    try:
        # A claim that comes before its volume is known waits for the controller's next round, 15 s
        # later.
        wait_until(
            lambda: cluster.core.read_persistent_volume(volume).status.phase == "Available",
            f"volume {volume} is available",
        )
        with _claim(cluster, in_namespace, name, {"storageClassName": "", "volumeName": volume}, size):
            yield name
    finally:
        cluster.kubectl("delete", "persistentvolume", volume, "--timeout=60s")
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _claim(cluster: Cluster, in_namespace: str, name: str, spec: dict[str, str], size: str) -> Iterator[None]:
    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": in_namespace},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": size}}, **spec},
    }
    cluster.core.create_namespaced_persistent_volume_claim(in_namespace, body)
    try:
        if spec.get("volumeName"):  # A storage class may wait for the first pod.
            wait_until(
                lambda: (
                    cluster.core.read_namespaced_persistent_volume_claim(name, in_namespace).status.phase == "Bound"
                ),
                f"claim {name} is bound",
            )
        yield
    finally:
        cluster.kubectl("delete", "persistentvolumeclaim", name, "-n", in_namespace, "--timeout=60s")


def _volume(name: str, directory: Path, size: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": {"amphitrite.io/test": "true"}},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "hostPath": {"path": str(directory), "type": "Directory"},
        },
    }
