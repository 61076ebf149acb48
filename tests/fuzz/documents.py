"""Broken YAML documents of every kind, judged as ``ml`` judges them, and through the whole command
line.

    python -m tests.fuzz.documents --documents 100000 [--seed 1]

Prints how many were taken and refused, how long that took, and every failure: an exception that is
no Error, a refusal without ``file:line:column``, a document that is taken and yet not valid. Ends
with 1 when there is one.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import os
import random
import re
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import yaml

from amphitrite.cli.documents.document_files import load_document, validate_and_normalize
from amphitrite.cli.main import main as ml
from amphitrite.schemas import documents
from amphitrite.schemas.errors import Error

_ROUTE = {"port": 8000, "path": "/v2/health/live"}
_ENVIRONMENT = {
    "name": "env",
    "version": "1.10",
    "image": "registry/image:tag",
    "conda_file": {"name": "c", "dependencies": ["python"]},
    "inference_config": {name: _ROUTE for name in ("liveness_route", "readiness_route", "scoring_route")},
    "os_type": "linux",
    "tags": {"a": 1.5},
}
_DEPLOYMENT: dict[str, Any] = {
    "name": "blue",
    "endpoint_name": "my-endpoint",
    "model": {"name": "m", "version": 1, "path": "./models", "type": "triton_model"},
    "environment": {key: value for key, value in _ENVIRONMENT.items() if key != "conda_file"},
    "instance_type": "Standard_NC6s_v3",
    "instance_count": 1,
    "environment_variables": {"A": 1},
    "request_settings": {"request_timeout_ms": 5000, "max_queue_wait_ms": 500},
    "readiness_probe": {"period": 2, "initial_delay": 10},
    "liveness_probe": {"failure_threshold": 30},
    "scale_settings": {"type": "default"},
    "data_collector": {"collections": {"c": {"enabled": "true", "data": {"name": "d"}}}, "sampling_rate": 0.5},
    "code_configuration": {"code": "./src", "scoring_script": "score.py"},
}
_TYPE: dict[str, Any] = {
    "name": "gpu-small",
    "resources": {"requests": {"cpu": "500m", "nvidia.com/gpu": 1}, "limits": {"memory": "2Gi"}},
    "node_selector": {"pool": "gpu"},
    "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}],
}
_AZURE_TYPE: dict[str, Any] = {
    "apiVersion": "amlarc.azureml.com/v1alpha1",
    "kind": "InstanceType",
    "metadata": {"name": "gpu-small"},
    "spec": {"nodeSelector": {"pool": "gpu"}, "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}},
}
_ENDPOINT: dict[str, Any] = {
    "$schema": "https://azuremlschemas.azureedge.net/latest/managedOnlineEndpoint.schema.json",
    "name": "my-endpoint",
    "auth_mode": "key",
    "traffic": {"blue": 90, "green": 10},
    "mirror_traffic": {"grey": 5},
    "tags": {"team": "vision"},
    "identity": {"type": "system_assigned"},
}
#: A document of each kind, with nearly every field.
VALID: dict[str, dict[str, Any]] = {
    "managed_online_endpoint": {**_ENDPOINT, "public_network_access": "enabled"},
    "kubernetes_online_endpoint": {**_ENDPOINT, "compute": "azureml:k8s"},
    "managed_online_deployment": _DEPLOYMENT,
    "kubernetes_online_deployment": {
        **_DEPLOYMENT,
        "type": "kubernetes",
        "resources": {"requests": {"cpu": "0.1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "1"}},
        "scale_settings": {"type": "target_utilization", "min_instances": 1, "max_instances": 2},
    },
    "model": {"name": "m", "version": 2, "path": "x", "flavors": {"f": {}}, "type": "mlflow_model", "stage": "s"},
    "environment": _ENVIRONMENT,
    "legacy_endpoint": {
        "name": "my-endpoint",
        "traffic": {"blue": 100},
        "deployments": [{"name": "blue", "instance_type": "x", "model": "azureml:m:1"}, _DEPLOYMENT],
    },
    "kubernetes_compute": {
        "name": "k8s",
        "type": "kubernetes",
        "namespace": "azureml",
        "kubeconfig": "./config",
        "default_instance_type": "gpu-small",
        "instance_types": [_TYPE],
    },
    "instance_types": {"instance_types": [_TYPE]},
    "azure_instance_type": _AZURE_TYPE,
    "azure_instance_type_list": {
        "apiVersion": _AZURE_TYPE["apiVersion"],
        "kind": "InstanceTypeList",
        "items": [_AZURE_TYPE],
    },
}
FRAGMENTS = [
    *("a: ", "- ", "\n", "  ", "{", "}", "[", "]", "&x ", "*x", "<<: ", "!!int ", "!!binary ", "!t ", "? ", ": "),
    *("|\n", ">\n", "---\n", "...\n", "%YAML 1.1\n", "'", '"', '"\\ud800"', '"\\U00110000"', "#", "\t", "{{N}}"),
    *("1.10", "0b", "0o17", "~", "é", "\ufeff", "\u2028", "\x85", "!!python/object/apply:os.system [id]", "2026-02-30"),
    *("!!timestamp 99999-01-01", "1e999", ".nan", "-.inf", "=", "!!set {a}", "!!omap [a: 1]", "\x00", "\x07", "1_000"),
    *(
        "9" * 5000,
        "&a [*a, *a]",
        "<<: [*x, *y]",
        "? [a, b]\n: c",
        "!!float ''",
        "12:30:45",
        "!<tag:yaml.org,2002:int> x",
    ),
]
SCALARS: list[Any] = [
    *(None, True, 0, -1, 10**30, 1.5, float("nan"), float("inf"), "", " ", "\0", "\ud800", "\n", "é" * 300, "{{X}}"),
    *("azureml:m", "azureml:m:1", "2", "kubernetes", "Key", "1e5", "../..", [], {}, [[]], {"a": None}, {1: 2}, {"": 0}),
    *(["x"] * 3, {"name": "n"}, {"path": 1}, "managed", b"\xff", "system_assigned", -0.0, 2**63, "0x10", "yes"),
]
#: Bytes that the whole run may take.
MEMORY = 2 * 1024**3
#: Where a message says where: ``doc.yml:1:1``.
_PLACE = re.compile(r"\.yml:\d+:\d+")
_COMMANDS = {
    "online-endpoint": ("managed_online_endpoint", "kubernetes_online_endpoint", "legacy_endpoint"),
    "online-deployment": ("managed_online_deployment", "kubernetes_online_deployment"),
    "model": ("model",),
    "environment": ("environment",),
}


@dataclass
class Report:
    """``outcomes``: how many were taken, refused, and asked of the command line. ``failures``: text
    -> how often."""

    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        counted = ", ".join(f"{name}: {count}" for name, count in sorted(self.outcomes.items()))
        lines = [f"{counted}; {self.seconds:.0f} s"]
        return "\n".join([*lines, *(f"FAILED {count} times: {text}" for text, count in self.failures.most_common(20))])


def run(count: int, seed: int, *, every: int = 20) -> Report:
    """``count`` documents; one of ``every`` through the whole command line too."""
    chance, report, began = random.Random(seed), Report(), time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "doc.yml"
        for number in range(count):
            kind = chance.choice(sorted(VALID))
            content = _broken(kind, chance)
            file.write_bytes(content)
            _failing(report, content, lambda kind=kind: _judge(file, kind, report))
            if number % 10_000 == 9_999:
                print(f"{number + 1} documents, {len(report.failures)} failures", file=sys.stderr, flush=True)
            if number % every == 0:
                _failing(report, content, lambda kind=kind: _command(file, kind, report))
    report.seconds = time.monotonic() - began
    return report


def _failing(report: Report, content: bytes, judge: Callable[[], None]) -> None:
    try:
        judge()
    except Exception as exc:
        where = "".join(traceback.format_exception(exc)[-2:])
        report.failures[f"{where}    {content[:300]!r}"] += 1


def _judge(file: Path, kind: str, report: Report) -> None:
    try:
        document = validate_and_normalize(load_document(str(file)), kind)
    except Error as error:
        report.outcomes["refused"] += 1
        places = [violation.location or "" for violation in error.violations] or [f"{error.message} {error.target}"]
        assert all(_PLACE.search(place) for place in places), f"no place in {error!r}"
        str(error.to_body())
        return
    report.outcomes["taken"] += 1
    assert documents.validate(kind, document) == []
    assert documents.normalize(kind, document) == document


def _command(file: Path, kind: str, report: Report) -> None:
    def connect(_: object) -> NoReturn:
        raise Error("ServerUnreachable", "no control plane")

    command = next((name for name, kinds in _COMMANDS.items() if kind in kinds), None)
    if command is None:
        return
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        code = ml([command, "create", "-f", str(file)], connect)
    report.outcomes["command lines"] += 1
    assert code in (1, 2, 3), f"exit code {code}"
    assert "Traceback" not in said.getvalue()


def _broken(kind: str, chance: random.Random) -> bytes:
    way = chance.random()
    if way < 0.05:
        return chance.randbytes(chance.randrange(80))
    if way < 0.15:
        return "".join(chance.choices(FRAGMENTS, k=chance.randrange(1, 16))).encode("utf-8", "surrogatepass")
    document = copy.deepcopy(VALID[kind])
    if way < 0.65:
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            _change(document, chance)
    try:
        text = yaml.safe_dump(document, allow_unicode=True, default_flow_style=chance.choice((None, False, True)))
    except (UnicodeEncodeError, yaml.YAMLError):
        text = repr(document)
    if way >= 0.6:
        for _ in range(chance.choice((1, 1, 2, 4))):
            text = _edited(text, chance)
    return text.encode("utf-8", "surrogatepass")


def _change(value: Any, chance: random.Random) -> None:
    """One place somewhere inside, changed."""
    places: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        keys = list(inner) if isinstance(inner, dict) else range(len(inner))
        places += [(inner, key) for key in keys]
        waiting += [inner[key] for key in keys if isinstance(inner[key], dict | list)]
    if not places:
        return
    inner, key = chance.choice(places)
    what = chance.randrange(4)
    if what == 0:
        del inner[key]
    elif what == 1 and isinstance(inner, dict):
        inner[f"{key}x" if chance.random() < 0.5 else str(key).upper()] = inner.pop(key)
    elif what == 2 and isinstance(inner, dict):
        inner[chance.choice(("extra", "name", "type", "$schema", "", 1, None))] = copy.deepcopy(chance.choice(SCALARS))
    else:
        inner[key] = copy.deepcopy(chance.choice(SCALARS))


def _edited(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    what = chance.randrange(4)
    if what == 0:
        return text[:at] + chance.choice(FRAGMENTS) + text[at:]
    if what == 1:
        return text[:at] + text[at + chance.randrange(1, 20) :]
    lines = text.splitlines(keepends=True)
    number = chance.randrange(len(lines)) if lines else 0
    if what == 2 and lines:
        return "".join([*lines[: number + 1], *lines[number:]])
    if lines:
        lines[number] = " " * chance.randrange(1, 5) + lines[number]
    return "".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="fuzz YAML documents")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    # What swells is a failure, and not the end of everything else on this machine.
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with tempfile.TemporaryDirectory() as home:
        os.environ["ML_HOME"] = home
        report = run(options.documents, options.seed)
    print(report)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
