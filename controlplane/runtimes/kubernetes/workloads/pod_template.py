"""The pod of an instance: a container that downloads the model, then one that serves it.

Decides every field of the pod. Must not know the objects around it, or how they are sent. The pod
complies with the Pod Security level ``restricted``, except for a ``hostPath`` cache, which that
level forbids.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from amphitrite.controlplane.core.capacity.node_capacity import quantity
from amphitrite.controlplane.core.desired.compute_clusters import PodShape
from amphitrite.controlplane.core.desired.containers import MODEL_DIR, Container
from amphitrite.controlplane.core.desired.resources import WorkloadSpec
from amphitrite.controlplane.runtimes.kubernetes.workloads.grants import GRANT_KEY, GRANT_VARIABLE
from amphitrite.controlplane.runtimes.kubernetes.workloads.model_facts import ModelFacts
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import (
    FETCHER,
    GRPC_PORT,
    HTTP_PORT,
    METRICS_PORT,
    NOTE_ANNOTATION,
    SERVER,
    grpc_port,
    http_port,
    labels,
    object_name,
    selector_labels,
)
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_probes import Termination, probes
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_resources import format_bytes, gpus, shared_memory
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_settings import KubernetesSettings
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_storage import RESOURCE, Storage, storage
from amphitrite.dataplane.triton.command_line import RESPONSE_CACHE_BYTES, RESTRICTED
from amphitrite.dataplane.triton.cpu_configuration import CpuConfiguration, note

MODEL_MOUNT = "/mnt/models"
_CACHE_MOUNT, _CONFIG_MOUNT = "/var/cache/amphitrite", "/etc/amphitrite"
_GRPC = {"name": "grpc", "containerPort": GRPC_PORT, "protocol": "TCP"}
_METRICS = {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"}
CA_FILE = "ca.crt"
_USER = 1000
_SCRAPED = {
    "prometheus.io/scrape": "true",
    "prometheus.io/port": str(METRICS_PORT),
    "prometheus.io/path": "/metrics",
}

_FETCHER_REQUESTS = (("cpu", "100m"), ("memory", "256Mi"))

#: The key for Triton's control APIs is the pod's uid, which other pods do not know.
_KEY_HEADER = "amphitrite-pod"

#: The first NVIDIA release whose Triton limits a request body, to 64 MiB by default.
_BOUNDS_INPUT = (25, 12)
#: The first release with response caches that are chosen by name.
_HAS_CACHES = (23, 3)
_RELEASE = re.compile(r"/tritonserver:(\d\d)\.(\d\d)-")


def pod_template(
    workload: WorkloadSpec,
    demand: PodShape,
    settings: KubernetesSettings,
    termination: Termination,
    facts: ModelFacts | None,
) -> dict[str, Any]:
    """``demand``: from ``pod_resources.demand``."""
    image = settings.cache.kind == "image"
    spec: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": termination.grace_s,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **({} if image else {"initContainers": [_fetcher(workload, demand, settings, facts)]}),
        "containers": [_server(workload, demand, settings, termination, facts)],
        "volumes": _volumes(workload, demand, settings, facts),
        **_scheduling(workload, demand, settings),
    }
    return {
        "metadata": {
            "labels": labels(workload, settings.release),
            "annotations": {
                "kubectl.kubernetes.io/default-container": SERVER,
                **(_SCRAPED if workload.container is None else {}),
                **_note(workload, demand, facts),
            },
        },
        "spec": spec,
    }


def _server(
    workload: WorkloadSpec,
    demand: PodShape,
    settings: KubernetesSettings,
    termination: Termination,
    facts: ModelFacts | None,
) -> dict[str, Any]:
    where, container = model_mount(workload), workload.container
    image = container.image if container is not None else demand.image or settings.image_for(demand)
    # An image volume contains one model. A cache contains many, and the pod mounts only its own.
    part = {} if settings.cache.kind == "image" else {"subPath": workload.model.digest}
    return {
        "name": SERVER,
        "image": image,
        "imagePullPolicy": settings.image_pull_policy,
        **_command(container, termination, _arguments(where, image, settings, termination)),
        "env": _environment(workload),
        "ports": [
            {"name": "http", "containerPort": http_port(workload), "protocol": "TCP"},
            *([_GRPC] if grpc_port(workload) is not None else []),
            *([_METRICS] if container is None else []),
        ],
        "resources": _with_storage(
            {"requests": dict(demand.requests), "limits": dict(demand.limits)}, storage(demand, settings, facts)
        ),
        **probes(workload.pod, facts, container),
        "lifecycle": {"preStop": {"sleep": {"seconds": termination.pre_stop_s}}},
        # An image with its own command may write anywhere; all other restrictions stay.
        "securityContext": _confined(read_only=container is None or container.repository is not None),
        # The pod's status then contains the end of a failed container's log, even if its node is
        # gone.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "model", "mountPath": where, "readOnly": True, **part},
            *_cpu_mounts(where, cpu_configurations(workload, demand, facts)),
            {"name": "shm", "mountPath": "/dev/shm"},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }


def cpu_configurations(
    workload: WorkloadSpec, demand: PodShape, facts: ModelFacts | None
) -> Mapping[str, CpuConfiguration]:
    """What stands in place of configurations that need a GPU, by its key in the ConfigMap. Empty
    where the pod has a GPU, or is no Triton."""
    serves = workload.container is None or workload.container.repository is not None
    if facts is None or not serves or gpus(dict(demand.requests)):
        return {}
    return {f"cpu-{number}.pbtxt": one for number, one in enumerate(facts.on_cpu)}


def _note(workload: WorkloadSpec, demand: PodShape, facts: ModelFacts | None) -> dict[str, str]:
    replaced = cpu_configurations(workload, demand, facts).values()
    text = note(replaced, f"{workload.instance_type} has no GPU")
    return {NOTE_ANNOTATION: text} if text else {}


def _cpu_mounts(where: str, replaced: Mapping[str, CpuConfiguration]) -> list[dict[str, Any]]:
    """Each over the model's own file."""
    return [
        {"name": "config", "mountPath": f"{where}/{one.path}", "subPath": key, "readOnly": True}
        for key, one in replaced.items()
    ]


def _command(container: Container | None, termination: Termination, ours: list[str]) -> dict[str, Any]:
    """The container's own command, if it has one. The command of NVIDIA's image is a shell, so
    Triton is started instead, with the environment's port and Triton's defaults."""
    if container is None:
        return {"command": ["tritonserver"], "args": ours}
    if container.repository_path is None:
        return {}
    arguments = [
        f"--model-repository={container.repository_path}",
        f"--http-port={container.port}",
        f"--exit-timeout-secs={termination.exit_timeout_s}",
        *([] if container.port == GRPC_PORT else [f"--grpc-port={GRPC_PORT}"]),
    ]
    return {"command": ["tritonserver"], "args": [argument.replace("$(", "$$(") for argument in arguments]}


def _arguments(where: str, image: str, settings: KubernetesSettings, termination: Termination) -> list[str]:
    release = _RELEASE.search(image)
    version = (int(release[1]), int(release[2])) if release is not None else (0, 0)
    return [
        f"--model-repository={where}",
        "--model-control-mode=none",
        "--exit-on-error=true",
        "--strict-readiness=true",
        f"--exit-timeout-secs={termination.exit_timeout_s}",
        "--allow-http=true",
        f"--http-port={HTTP_PORT}",
        f"--http-restricted-api={RESTRICTED}:{_KEY_HEADER}=$(AMPHITRITE_POD_UID)",
        *([f"--http-max-input-size={settings.max_input_bytes}"] if version >= _BOUNDS_INPUT else []),
        *([f"--cache-config=local,size={RESPONSE_CACHE_BYTES}"] if version >= _HAS_CACHES else []),
        "--allow-grpc=true",
        f"--grpc-port={GRPC_PORT}",
        f"--grpc-restricted-protocol={RESTRICTED}:{_KEY_HEADER}=$(AMPHITRITE_POD_UID)",
        "--allow-metrics=true",
        f"--metrics-port={METRICS_PORT}",
        "--allow-sagemaker=false",
        "--allow-vertex-ai=false",
        "--log-format=ISO8601",
    ]


def _environment(workload: WorkloadSpec) -> list[dict[str, Any]]:
    """The deployment's variables, and our own, which win."""
    ours: dict[str, dict[str, Any]] = {
        "AMPHITRITE_INSTANCE": {"valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
        "AMPHITRITE_POD_UID": {"valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}}},
    }
    # The root file system is read-only, and the image's user may have no home.
    fixed = {"HOME": "/tmp", "PYTHONUNBUFFERED": "1"}
    if workload.container is not None:
        ours[MODEL_DIR] = {"value": _literal(workload.container.model_dir)}
    defaults: dict[str, dict[str, Any]] = {name: {"value": value} for name, value in fixed.items()}
    theirs = {name: _from_secret(workload, name) for name, _ in workload.environment_variables}
    return [{"name": name, **value} for name, value in {**defaults, **theirs, **ours}.items()]


def secret_values(workload: WorkloadSpec, settings: KubernetesSettings) -> dict[str, str]:
    """What the containers take from the workload's Secret, by its key there: the deployment's
    variables, and the fetcher's grant."""
    grant = {} if settings.cache.kind == "image" else {GRANT_KEY: settings.grant(workload)}
    return {**dict(workload.environment_variables), **grant}


def _from_secret(workload: WorkloadSpec, key: str) -> dict[str, Any]:
    return {"valueFrom": {"secretKeyRef": {"name": object_name(workload), "key": key}}}


def _literal(value: str) -> str:
    """Escapes ``$(NAME)``, which Kubernetes would replace in values."""
    return value.replace("$(", "$$(")


def _fetcher(
    workload: WorkloadSpec, demand: PodShape, settings: KubernetesSettings, facts: ModelFacts | None
) -> dict[str, Any]:
    digest = workload.model.digest
    variables = {
        "AMPHITRITE_FETCH_URL": settings.fetch_url,
        "AMPHITRITE_FETCH_DIGEST": digest,
        "AMPHITRITE_FETCH_CACHE": _CACHE_MOUNT,
        **({"AMPHITRITE_FETCH_CACHE_BYTES": str(settings.cache.limit)} if settings.cache.limit else {}),
        **({"AMPHITRITE_FETCH_CA": f"{_CONFIG_MOUNT}/{CA_FILE}"} if settings.fetch_ca else {}),
    }
    # A pod requests the maximum of both containers, which should be the server's.
    requested = {name: quantity(text) for name, text in demand.requests}
    resources = {
        name: text if quantity(text) <= requested.get(name, quantity(text)) else dict(demand.requests)[name]
        for name, text in _FETCHER_REQUESTS
    }
    return {
        "name": FETCHER,
        "image": settings.fetcher_image,
        "imagePullPolicy": settings.image_pull_policy,
        "env": [
            *({"name": name, "value": value} for name, value in variables.items()),
            {"name": GRANT_VARIABLE, **_from_secret(workload, GRANT_KEY)},
        ],
        "resources": _with_storage(
            {"requests": resources, "limits": {"memory": resources["memory"]}}, storage(demand, settings, facts)
        ),
        "securityContext": _confined(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "model", "mountPath": _CACHE_MOUNT},
            {"name": "tmp", "mountPath": "/tmp"},
            *([{"name": "config", "mountPath": _CONFIG_MOUNT, "readOnly": True}] if settings.fetch_ca else []),
        ],
    }


def _volumes(
    workload: WorkloadSpec, demand: PodShape, settings: KubernetesSettings, facts: ModelFacts | None
) -> list[dict[str, Any]]:
    shm = format_bytes(shared_memory(facts, gpus(dict(demand.requests))))
    keys = list(cpu_configurations(workload, demand, facts))
    if settings.fetch_ca is not None and settings.cache.kind != "image":
        keys.insert(0, CA_FILE)
    config = {"name": object_name(workload), "items": [{"key": key, "path": key} for key in keys]}
    disk = storage(demand, settings, facts)
    return [
        {"name": "model", **_model_volume(workload, settings, disk)},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": shm}},
        {"name": "tmp", "emptyDir": {"sizeLimit": disk.tmp}},
        *([{"name": "config", "configMap": config}] if keys else []),
    ]


def _with_storage(resources: dict[str, dict[str, str]], disk: Storage) -> dict[str, dict[str, str]]:
    bounds = {"requests": disk.requests, "limits": disk.limits}
    return {side: {**many, **({RESOURCE: text} if (text := bounds[side]) else {})} for side, many in resources.items()}


def _model_volume(workload: WorkloadSpec, settings: KubernetesSettings, disk: Storage) -> dict[str, Any]:
    cache = settings.cache
    if cache.kind == "pvc":
        return {"persistentVolumeClaim": {"claimName": cache.source}}
    if cache.kind == "hostPath":
        # A directory that the kubelet creates would belong to root, and the fetcher could not write
        # to it.
        return {"hostPath": {"path": cache.source, "type": "Directory"}}
    if cache.kind == "image":
        reference = f"{cache.source}:{workload.model.digest}"
        return {"image": {"reference": reference, "pullPolicy": settings.image_pull_policy}}
    return {"emptyDir": {"sizeLimit": disk.model}}


def _scheduling(workload: WorkloadSpec, demand: PodShape, settings: KubernetesSettings) -> dict[str, Any]:
    """The instance type's scheduling fields. A topology spread without a selector gets this
    workload's pods."""
    scheduling: Mapping[str, Any] = demand.scheduling
    fields = {name: value for name, value in scheduling.items() if name != "imagePullSecrets"}
    if spread := scheduling.get("topologySpreadConstraints"):
        mine = {"matchLabels": selector_labels(workload)}
        fields["topologySpreadConstraints"] = [{"labelSelector": mine, **one} for one in spread]
    secrets = [*settings.image_pull_secrets, *(one["name"] for one in scheduling.get("imagePullSecrets") or ())]
    if secrets:
        fields["imagePullSecrets"] = [{"name": name} for name in dict.fromkeys(secrets)]
    return fields


def _confined(read_only: bool = True) -> dict[str, Any]:
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": read_only,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def model_mount(workload: WorkloadSpec) -> str:
    """The path of the model's files: the container's, ``model_mount_path``, or our default."""
    if workload.container is not None:
        return workload.container.mount
    return (workload.pod.model_mount_path if workload.pod else None) or MODEL_MOUNT
