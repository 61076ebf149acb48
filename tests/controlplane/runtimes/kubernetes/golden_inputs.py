"""The inputs of the golden manifests, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from amphitrite.controlplane.core.desired.compute_clusters import PodShape
from amphitrite.controlplane.core.desired.containers import Container
from amphitrite.controlplane.core.desired.resources import (
    ModelReference,
    PodSettings,
    Probe,
    WorkloadSpec,
    workload_spec,
)
from amphitrite.controlplane.runtimes.kubernetes.workloads.model_facts import ModelFacts, model_facts
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_settings import (
    TRITON_IMAGE,
    KubernetesSettings,
    model_cache,
)

DIGEST = "0123456789abcdef" * 4
CPU = PodShape("Standard_DS2_v2", (("cpu", "1800m"), ("memory", "5Gi")), (("memory", "5Gi"),))
GPU = PodShape(
    "Standard_NC6s_v3",
    (("cpu", "5"), ("memory", "100Gi"), ("nvidia.com/gpu", "1")),
    (("memory", "100Gi"), ("nvidia.com/gpu", "1")),
    {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]},
)
MIG = PodShape(
    "a100-slice",
    (("cpu", "4"), ("memory", "16Gi")),
    (("nvidia.com/mig-1g.10gb", "2"),),
    {
        "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
        "runtimeClassName": "nvidia",
        "priorityClassName": "serving",
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
        ],
        "imagePullSecrets": [{"name": "nvcr"}],
    },
    "nvcr.io/nvidia/tritonserver@sha256:" + "ab" * 32,
)


@dataclass(frozen=True)
class Case:
    """``timeout_s``: of requests."""

    workload: WorkloadSpec
    settings: KubernetesSettings
    timeout_s: float = 5.0


def _contained(container: Container, pod: PodSettings = PodSettings()) -> WorkloadSpec:  # noqa: B008
    model = ModelReference("resnet", "3", DIGEST, ("resnet50",))
    return workload_spec(
        "cats", "blue", model, "any", {"MODEL_NAME": "the name of a model"}, "kubernetes", pod, container
    )


def _workload(pod: PodSettings = PodSettings(), endpoint: str = "cats", **variables: str) -> WorkloadSpec:  # noqa: B008
    model = ModelReference("resnet", "3", DIGEST, ("resnet50",))
    return workload_spec(endpoint, "blue", model, "any", variables, "kubernetes", pod)


def _settings(shape: PodShape = CPU, facts: ModelFacts | None = None) -> KubernetesSettings:
    return KubernetesSettings(
        namespace="serving",
        shape=lambda name: shape,
        grant=lambda workload: f"Bearer v2.1000.{workload.name}.{workload.model.digest}.signature",
        facts=lambda digest: facts,
        fetch_url="https://amphitrite.serving.svc:8443",
        fetch_ca="-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        fetcher_image="docker.io/amphitrite/fetcher:1",
        proxy_selector=(("app.kubernetes.io/component", "dataplane"),),
    )


CASES: Mapping[str, Case] = {
    "cpu": Case(_workload(), _settings()),
    "gpu-model-on-cpu": Case(
        _workload(),
        _settings(
            facts=model_facts(
                [("resnet50/1/model.onnx", 100), ("resnet50/config.pbtxt", 60), ("other/config.pbtxt", 60)],
                lambda path: "instance_group { count: 2 kind: KIND_%s }\n" % ("GPU" if "resnet" in path else "CPU"),
            )
        ),
    ),
    "gpu": Case(_workload(), _settings(GPU, ModelFacts(40 * 1024**3, gpu_instances=4)), 120.0),
    "mig-by-digest": Case(_workload(), replace(_settings(MIG), image_pull_secrets=("registry",), release="second")),
    "everything-from-yaml": Case(
        _workload(
            PodSettings(
                readiness=Probe(initial_delay=30, period=10, timeout=5, success_threshold=2, failure_threshold=90),
                liveness=Probe(initial_delay=10, period=20, timeout=4, success_threshold=1, failure_threshold=6),
                requests=(("cpu", "2"), ("memory", "4Gi"), ("nvidia.com/gpu", "2")),
                limits=(("cpu", "3"), ("memory", "6Gi"), ("nvidia.com/gpu", "2")),
                model_mount_path="/models/mine",
            ),
            GREETING="$(HOME) sweet home",
            HOME="/elsewhere",
            AMPHITRITE_POD_UID="not this one",
        ),
        _settings(GPU),
        30.5,
    ),
    "own-container": Case(
        _contained(
            Container(
                image="example.azurecr.io/tf/serving:1",
                port=8501,
                liveness_path="/v1/models/resnet",
                readiness_path="/v1/models/resnet",
                scoring_path="/v1/models/resnet:predict",
                model_dir="/var/azureml-app/azureml-models/resnet/3",
                folder="resnet50",
            )
        ),
        _settings(),
    ),
    "nvidias-container": Case(
        _contained(
            Container(
                image="nvcr.io/nvidia/tritonserver:25.04-py3",
                port=8000,
                liveness_path="/v2/health/live",
                readiness_path="/v2/health/ready",
                scoring_path="/",
                model_dir="/$(models)",
                folder="resnet50",
                repository="",
            ),
            PodSettings(model_mount_path="/$(models)"),
        ),
        _settings(GPU),
        60.0,
    ),
    "triton-by-digest": Case(
        _workload(), replace(_settings(), triton_image=f"registry.example/{TRITON_IMAGE}@sha256:{'cd' * 32}")
    ),
    "claim": Case(
        _workload(),
        replace(
            _settings(),
            proxy_namespace="ml",
            metrics_from=(),
            storage_requests=False,
            cache=replace(model_cache("pvc:models"), limit=200 * 1024**3),
            fetch_ca=None,
            egress_ports=(443, 9000),
        ),
    ),
    "node-directory": Case(
        _workload(),
        replace(
            _settings(replace(CPU, limits=(("ephemeral-storage", "10Gi"), ("memory", "5Gi")))),
            cache=model_cache("hostPath:/var/lib/models"),
            image_pull_policy="Always",
            metrics_from=({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}},),
        ),
    ),
    "image-volume": Case(
        _workload(),
        replace(_settings(), cache=model_cache("image:registry.example/models"), triton_image="example/triton:mine"),
    ),
    "long-name-open-to-all": Case(
        _workload(endpoint="a-name-of-thirty-two-characters-"[:31] + "x"),
        replace(_settings(), proxy_selector=None, network_policy=False),
    ),
}
