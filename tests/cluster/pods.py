"""Pods of the tests' own, as the Pod Security level ``restricted`` wants them.

Decides their security, their writable directories and how their end is waited for. Must not know
what runs in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kubernetes import utils

from ..waiting import wait_until
from .node import Cluster

#: Directories that are writable in a pod with a read-only root file system.
WRITABLE = {"tmp": "/tmp", "home": "/var/lib/amphitrite", "run": "/run/amphitrite"}


@dataclass(frozen=True, slots=True)
class Ended:
    """``message``: what the container left in /dev/termination-log."""

    exit_code: int
    log: str
    message: str


def restricted_pod(
    name: str,
    image: str,
    *,
    command: Sequence[str] | None = None,
    args: Sequence[str] | None = None,
    env: Mapping[str, str] | None = None,
    user: int | None = None,
    writable: Mapping[str, str] = WRITABLE,
    claims: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A manifest: one container that starts once, with a read-only root file system.

    ``user``: None for the image's own. ``writable``: volume name -> mount path, each an emptyDir;
    ``claims``: claim name -> mount path.
    """
    claims = claims or {}
    container = {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        **({"command": list(command)} if command is not None else {}),
        **({"args": list(args)} if args is not None else {}),
        "env": [{"name": key, "value": value} for key, value in (env or {}).items()],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": key, "mountPath": path} for key, path in {**writable, **claims}.items()],
        # All pods that ask for nothing share what others leave: seconds can pass until one of them
        # has its turn.
        "resources": {"requests": {"cpu": "100m"}},
    }
    security = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    if user is not None:
        security["runAsUser"] = user
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "securityContext": security,
            "containers": [container],
            "volumes": [
                *({"name": key, "emptyDir": {}} for key in writable),
                *({"name": key, "persistentVolumeClaim": {"claimName": key}} for key in claims),
            ],
        },
    }


def create(cluster: Cluster, namespace: str, *manifests: Mapping[str, Any]) -> None:
    body = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
    utils.create_from_dict(cluster.api, body, namespace=namespace)


def ended(cluster: Cluster, namespace: str, name: str, deadline_s: float = 60.0) -> Ended:
    """How the first container of the pod ended."""

    def look() -> Any:
        pod = cluster.core.read_namespaced_pod(name, namespace)
        return pod.status.phase in ("Succeeded", "Failed") and pod.status.container_statuses[0].state.terminated

    state = wait_until(look, f"pod {name} has ended", deadline_s, detail=lambda: told(cluster, namespace, name))
    return Ended(state.exit_code, cluster.log(namespace, name), state.message or "")


def told(cluster: Cluster, namespace: str, name: str) -> str:
    """What the cluster says about a pod, for a failed test's message."""
    about = cluster.kubectl("describe", "pod", name, "-n", namespace, check=False)
    return about + cluster.kubectl("logs", name, "-n", namespace, "--all-containers", "--tail=50", check=False)
