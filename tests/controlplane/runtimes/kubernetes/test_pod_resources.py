"""What a pod asks for: the instance type, the deployment over it, shared memory on top."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from amphitrite.controlplane.core.desired.compute_clusters import PodShape
from amphitrite.controlplane.core.desired.resources import PodSettings
from amphitrite.controlplane.runtimes.kubernetes.workloads.model_facts import ModelFacts, model_facts
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_resources import demand
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_settings import TRITON_IMAGE
from amphitrite.schemas.errors import Error

from .golden_inputs import CASES

Pairs = dict[str, str]


@dataclass(frozen=True)
class Row:
    """``shape`` and ``given``: (requests, limits). ``python``: processes that the model starts."""

    name: str
    shape: tuple[Pairs, Pairs]
    given: tuple[Pairs, Pairs]
    want: tuple[Pairs, Pairs]
    python: int = 0


ROWS = (
    Row(
        "memory's limit is its request, cores have none",
        ({"cpu": "2", "memory": "4Gi"}, {}),
        ({}, {}),
        ({"cpu": "2", "memory": "4352Mi"}, {"memory": "4352Mi"}),
    ),
    Row(
        "a GPU is told twice, whoever names it",
        ({"memory": "1Gi", "nvidia.com/gpu": "1"}, {}),
        ({}, {"nvidia.com/gpu": "2"}),
        ({"memory": "1280Mi", "nvidia.com/gpu": "2"}, {"memory": "1280Mi", "nvidia.com/gpu": "2"}),
    ),
    Row(
        "the deployment wins, with limits of its own",
        ({"cpu": "2", "memory": "4Gi"}, {"memory": "4Gi"}),
        ({"cpu": "500m", "memory": "1Gi"}, {"cpu": "1", "memory": "2Gi"}),
        ({"cpu": "500m", "memory": "1280Mi"}, {"cpu": "1", "memory": "2304Mi"}),
    ),
    Row(
        "a type's limit of cores ends where a deployment asks for cores",
        ({"cpu": "100m", "memory": "2Gi"}, {"cpu": "2", "memory": "2Gi"}),
        ({"cpu": "4"}, {}),
        ({"cpu": "4", "memory": "2304Mi"}, {"memory": "2304Mi"}),
    ),
    Row(
        "64 MiB for each Python process, and as much again",
        ({"memory": "1Gi"}, {}),
        ({}, {}),
        ({"memory": "1728Mi"}, {"memory": "1728Mi"}),
        python=10,
    ),
    Row(
        "a limit alone is the request too",
        ({}, {"memory": "1Gi"}),
        ({}, {}),
        ({"memory": "1280Mi"}, {"memory": "1280Mi"}),
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_who_wins(row: Row) -> None:
    shape = PodShape("type", *(tuple(sorted(side.items())) for side in row.shape))
    requests, limits = (tuple(side.items()) for side in row.given)
    asked = demand(shape, PodSettings(requests=requests, limits=limits), ModelFacts(1, cpu_instances=row.python))
    assert (dict(asked.requests), dict(asked.limits)) == row.want


@pytest.mark.parametrize(
    ("requests", "limits", "said"),
    [
        ({"memory": "8Gi"}, {"memory": "4Gi"}, "request 8448Mi of memory, which is more than the limit 4352Mi"),
        ({"cpu": "many"}, {}, "cpu: 'many' is not a quantity"),
    ],
)
def test_what_cannot_be_is_refused(requests: Pairs, limits: Pairs, said: str) -> None:
    settings = PodSettings(requests=tuple(requests.items()), limits=tuple(limits.items()))
    with pytest.raises(Error, match=said) as caught:
        demand(PodShape("type"), settings, None)
    assert caught.value.code == "InvalidDeploymentSpec"


CPU_AND_GPU = 'backend: "python" instance_group [ { count: 2 kind: KIND_CPU }, { kind: KIND_GPU } ]'
OTHER_SPELLING = "backend: 'python'\ninstance_group { count: 3 }\ninstance_group: { count: 1 }"
NESTED = 'backend: "python" instance_group [{ rate_limiter { resources [{ name: "r" count: 9 }] } count: 2 }]'
COMMENT = '# backend: "python"\nbackend: "onnxruntime" instance_group { count: 5 }'
CONFIGS: list[tuple[str, str | None, str, tuple[int, int]]] = [
    ("one of each kind", CPU_AND_GPU, "model.py", (2, 1)),
    ("the other spelling", OTHER_SPELLING, "model.py", (4, 0)),
    ("nothing said", 'backend: "python"', "model.py", (2, 0)),
    ("no config", None, "model.py", (2, 0)),
    ("counts of something else", NESTED, "model.py", (2, 0)),
    ("a comment", COMMENT, "model.onnx", (0, 0)),
    ("another backend", 'platform: "onnxruntime_onnx"', "model.onnx", (0, 0)),
]


@pytest.mark.parametrize(("name", "config", "file", "want"), CONFIGS, ids=[row[0] for row in CONFIGS])
def test_python_processes_are_counted(name: str, config: str | None, file: str, want: tuple[int, int]) -> None:
    files = [(f"m/1/{file}", 100), *([("m/config.pbtxt", 1)] if config is not None else []), ("README", 7)]
    facts = model_facts(files, lambda path: config or "")
    assert (facts.cpu_instances, facts.gpu_instances) == want
    assert facts.size == sum(size for _, size in files)


def test_gpu_instances_count_for_each_gpu() -> None:
    assert ModelFacts(0, 1, 2).python_instances(4) == 9
    assert ModelFacts(0, 1, 2).python_instances(0) == 3


@pytest.mark.parametrize(
    ("chosen", "tag", "image"),
    [
        (TRITON_IMAGE, None, TRITON_IMAGE),
        (TRITON_IMAGE, "24.10-py3", "nvcr.io/nvidia/tritonserver:24.10-py3"),
        ("mirror.example.com/triton:24.10-py3", "24.10-py3", "mirror.example.com/triton:24.10-py3"),
    ],
)
def test_whose_image_it_is(chosen: str, tag: str | None, image: str) -> None:
    """Old GPUs need an old release, unless somebody has chosen the image."""
    settings = replace(CASES["cpu"].settings, triton_image=chosen)
    assert settings.image_for(PodShape("any", triton_tag=tag)) == image
