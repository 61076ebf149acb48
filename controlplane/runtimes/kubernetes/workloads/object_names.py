"""The names, labels, annotations and ports of an instance's objects.

Decides how they are derived from a workload. Must not know the content of the objects.
"""

from __future__ import annotations

import hashlib

from amphitrite.controlplane.core.desired.resources import WorkloadSpec

#: Field managers of server-side apply: of the template, written once, and of what scaling changes.
FIELD_MANAGER, SCALE_FIELD_MANAGER = "amphitrite", "amphitrite-scale"

#: Azure's names for the two containers of an instance.
SERVER, FETCHER = "inference-server", "storage-initializer"
HTTP_PORT, GRPC_PORT, METRICS_PORT = 8000, 8001, 8002

WORKLOAD_LABEL = "amphitrite.io/workload"
ENDPOINT_LABEL = "amphitrite.io/endpoint"
DEPLOYMENT_LABEL = "amphitrite.io/deployment"
#: The workload as JSON, so that a control plane knows what an instance runs without any other
#: record.
SPEC_ANNOTATION = "amphitrite.io/workload-spec"
HASH_ANNOTATION = "amphitrite.io/hash"
#: On a pod: what a user should know about how it serves.
NOTE_ANNOTATION = "amphitrite.io/note"
#: Names of the pods that were selected to stop when the Deployment was scaled down, separated by
#: commas.
STOPPING_ANNOTATION = "amphitrite.io/stopping"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

#: A Deployment's pods are named ``<name>-<10>-<5>``, and a pod's name is also its host name: at
#: most 63 characters.
NAME_MAX = 46
_DIGEST = 8


def http_port(workload: WorkloadSpec) -> int:
    """The port of the container's routes, or of this server's own Triton."""
    return HTTP_PORT if workload.container is None else workload.container.port


def grpc_port(workload: WorkloadSpec) -> int | None:
    """The port for gRPC, None without it.

    Our own Triton has it, and so has a Triton image that gets its command from us, unless its
    routes use that port.
    """
    container = workload.container
    if container is not None and (container.repository is None or container.port == GRPC_PORT):
        return None
    return GRPC_PORT


def object_name(workload: WorkloadSpec) -> str:
    """The workload's name; a long one is shortened and made unique with a digest of all of it."""
    name = workload.name
    if len(name) <= NAME_MAX:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: NAME_MAX - _DIGEST - 1].rstrip('-')}-{digest}"


def selector_labels(workload: WorkloadSpec) -> dict[str, str]:
    """The labels that select the pods for the Deployment, its Service and its policies.
    Immutable."""
    return {"app.kubernetes.io/component": "instance", WORKLOAD_LABEL: object_name(workload)}


def labels(workload: WorkloadSpec, release: str) -> dict[str, str]:
    """Kubernetes' recommended labels and our own. ``release``: of the control plane."""
    return {
        "app.kubernetes.io/name": "amphitrite",
        "app.kubernetes.io/instance": release,
        "app.kubernetes.io/managed-by": "amphitrite",
        "app.kubernetes.io/part-of": "amphitrite",
        **selector_labels(workload),
        ENDPOINT_LABEL: workload.endpoint,
        DEPLOYMENT_LABEL: workload.deployment,
    }


def watch_selector(release: str) -> str:
    """The label selector of everything that a control plane of this release has created."""
    return (
        "app.kubernetes.io/managed-by=amphitrite,app.kubernetes.io/component=instance,"
        f"app.kubernetes.io/instance={release}"
    )
