"""schemathesis over our own OpenAPI document: the real app in process, every check of schemathesis.

    python -m tests.fuzz.api --requests 20000 [--seed 1]

Prints how many requests there were and every failure; ends with 1 when there is one. The suite runs
a small part of it. What a request is refused for that its schema allows is judged here
(``_refused_by_a_rule``): it must be about what is there, or about several fields together, which no
schema of one body can say.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import schemathesis
from schemathesis import config as configuration
from schemathesis.core import NOT_SET
from schemathesis.core.failures import Failure
from schemathesis.engine import events, from_schema
from schemathesis.openapi.checks import RejectedPositiveData

from amphitrite.schemas import documents, wire
from amphitrite.schemas.documents import cross_field_rules, normalization

from ..controlplane.api.conftest import URI, WS, World, opened, serving

MEMORY = Path("/dev/shm")

#: Values of parameters: always, or as often as half of the time, so that requests arrive somewhere.
_FIXED = {
    "subscription": "local",
    "resource_group": "local",
    "workspace": "local",
    "account": "local.blob.core.windows.net",
    "container": "azureml-blobstore",
    "wait_s": 0,
}
_WORDS = {
    "path.name": ["ep1", "blue", "m", "local", "green", "new-one"],
    "path.endpoint": ["ep1", "EP1", "none"],
    "path.version": ["1", "2", "1.0"],
    "path.datastore": ["workspaceblobstore"],
    "path.path": ["LocalUpload/m/models/model_1/1/model.onnx", "LocalUpload/x/y", "a b/ü"],
    "path.location": ["local"],
    "body.properties.model": [f"{WS}/models/m/versions/1", "azureml:m@latest", "azureml:nope:1"],
    "body.properties.modelUri": [f"{URI}/LocalUpload/m/models", f"{URI}/LocalUpload/none"],
    "body.properties.instanceType": ["Standard_NC6s_v3", "Standard_DS3_v2"],
}
#: Codes of refusals that a schema cannot foresee: they are about what is there.
_STATE = {"InvalidRange", "Conflict", "PreconditionFailed", "UserError", "OutOfQuota", "LimitExceeded"}
#: The same of blobs, whose body means one thing or another by a parameter.
_BLOBS = {
    "InvalidBlockId",
    "InvalidBlockList",
    "InvalidXmlDocument",
    "Md5Mismatch",
    "InvalidMd5",
    "InvalidResourceName",
}


@dataclass
class Report:
    """``failures``: text -> how often."""

    requests: int = 0
    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        counted = ", ".join(f"{status}: {count}" for status, count in sorted(self.statuses.items()))
        lines = [f"{self.requests} requests in {self.seconds:.0f} s ({counted})"]
        lines += [f"FAILED {count} times: {text}" for text, count in self.failures.most_common()]
        lines += [f"ERROR: {text}" for text in self.errors]
        return "\n".join(lines)


class _Faults(logging.Handler):
    """Tracebacks of the server, into the report."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self._report = report

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self._report.failures["".join(traceback.format_exception(record.exc_info[1])[-4:])] += 1


@contextmanager
def fuzzed() -> Iterator[World]:
    """A workspace with something of each kind, its files in memory where that is possible."""
    with (
        tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as directory,
        opened(Path(directory) / "home") as world,
    ):
        yield serving(world)


def run(world: World, *, requests: int, seed: int, only: str = "") -> Report:
    """At least that many requests; 0: a few of each operation, chosen at random, which takes some
    seconds."""
    report, began = Report(), time.monotonic()
    log, faults = logging.getLogger("amphitrite"), _Faults(report)
    level = log.level
    log.setLevel(logging.ERROR)
    log.addHandler(faults)
    try:
        round_ = 0
        while not report.requests or report.requests < requests:
            _round(world, report, requests, seed + round_, only)
            world.settle()
            round_ += 1
    finally:
        log.setLevel(level)
        log.removeHandler(faults)
    report.seconds = time.monotonic() - began
    return report


def _round(world: World, report: Report, requests: int, seed: int, only: str) -> None:
    token = world.services.credentials.token.reveal()
    app = world.client._transport._app.app
    identity = world.services.credentials.identity_header.reveal()
    words = {name.replace(".", "_"): {"values": values} for name, values in _WORDS.items()}
    chosen = configuration.SchemathesisConfig.from_dict(
        {
            "seed": seed,
            "dictionaries": words,
            "parameters": {
                **_FIXED,
                **{name: {"dictionary": name.replace(".", "_"), "probability": 0.6} for name in _WORDS},
            },
            "auth": {
                "openapi": {
                    "token": {"bearer": token},
                    "agent": {"bearer": token},
                    "score": {"bearer": token},
                    "identity": {"api_key": identity},
                }
            },
            # 411, 412, 413 and 416 are refusals too.
            "checks": {
                "negative_data_rejection": {"expected-statuses": [*range(400, 407), *range(409, 418), 422, 428, 429]}
            },
            # The parameters of Azure Monitor are a language of their own, which no schema tells.
            "operations": [
                {
                    "include-path-regex": "/metrics$",
                    "include-method": "GET",
                    "checks": {"positive_data_acceptance": {"enabled": False}},
                }
            ],
            "generation": {
                "max-examples": 4 if not requests else min(100, max(2, requests // 200)),
                "deterministic": True,
                "database": "none",
                "no-shrink": True,
            },
            # Whatever the seed, the second round would send the same once more.
            "phases": {
                "coverage": {"enabled": bool(requests) and not report.requests},
                "stateful": {"enabled": bool(requests)},
            },
            "suppress-health-check": ["all"],
            "continue-on-failure": True,
            "warnings": False,
        }
    )
    schema = schemathesis.openapi.from_asgi(
        "/openapi.json", app, config=chosen, headers={"Authorization": f"Bearer {token}"}
    )
    if only:
        schema = schema.include(name_regex=only)
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            _count(event, report)
        elif isinstance(event, events.PhaseFinished) and requests:
            print(
                f"{event.phase.name.value}: {report.requests} requests, {len(report.failures)} failures",
                file=sys.stderr,
            )
        elif isinstance(event, events.NonFatalError | events.FatalError):
            report.errors.append(str(getattr(event, "info", None) or event.exception)[:500])


def _count(event: events.ScenarioFinished, report: Report) -> None:
    for interaction in event.recorder.interactions.values():
        report.requests += 1
        if interaction.response is not None:
            report.statuses[interaction.response.status_code] += 1
    for case_id, checks in event.recorder.checks.items():
        for check in checks:
            if check.failure_info is None:
                continue
            failure = check.failure_info.failure
            case, interaction = event.recorder.cases[case_id].value, event.recorder.interactions[case_id]
            if isinstance(failure, RejectedPositiveData) and _refused_by_a_rule(
                event.label or "", case.path_parameters or {}, case.body, interaction.response
            ):
                continue
            told = _told(event.label or "", check.name, failure, interaction)
            if told not in report.failures:
                print(told, file=sys.stderr, flush=True)
            report.failures[told] += 1


def _told(label: str, check: str, failure: Failure, interaction: Any) -> str:
    request, response = interaction.request, interaction.response
    said = response.content[:400] if response is not None else b""
    return (
        f"{check} at {label}: {failure.title}: {failure.message[:300]}\n"
        f"    {request.method} {request.uri}\n    {(request.body or b'')[:2000]!r}\n    {said!r}"
    )


def _refused_by_a_rule(operation: str, path: Mapping[str, Any], body: Any, response: Any) -> bool:
    """Whether a refusal of a body that the schema of its route allows is about something else than
    that body."""
    error = json.loads(response.content)["error"]
    if isinstance(error, str):
        return False
    if error["code"] in _STATE or (error["code"] == "Unsupported" and "/{path}" not in operation):
        return True
    if error["code"] == "BadArgument" and operation.endswith("/rollouts"):
        return True  # Its schema knows neither the deployments nor which settings go together.
    if error["code"] != "InvalidDocument":
        return error["code"] in _BLOBS and " /storage/" in operation
    if "/autoscaleSettings/" in operation:
        return True  # Its schema says no more than that there are fields.
    kind, document = _document(operation, path, body)
    across = [
        (one.path, one.message) for one in cross_field_rules.check(kind, normalization.coerce(kind, document, {}))
    ]
    # Nor can it say what no text anywhere inside of free objects may hold.
    found = [one for one in documents.validate(kind, document) if "NUL or an unpaired surrogate" not in one.message]
    return all((one.path, one.message) in across for one in found)


def _document(operation: str, path: Mapping[str, Any], body: Any) -> tuple[str, dict[str, Any]]:
    """The document that the control plane makes of a body, and its kind."""
    body = {} if body is NOT_SET else body
    name = str(path["name"])
    if operation.endswith("/deployments/{name}"):
        document = wire.deployment_from_wire(str(path["endpoint"]), name, body)
        return documents.deployment_kind(document), document
    if operation.endswith("/onlineEndpoints/{name}"):
        document = wire.endpoint_from_wire(name, body)
        return documents.endpoint_kind(document), document
    if "/computes/" in operation:
        return "kubernetes_compute", wire.compute_from_wire(name, body)
    if operation.endswith("{version}"):
        kind = "environment" if "/environments/" in operation else "model"
        read = {"environments": wire.environment_from_wire, "codes": wire.code_from_wire}
        word = operation.split("/{name}")[0].rsplit("/", 1)[1]
        return kind, read.get(word, wire.model_from_wire)(name, str(path["version"]), body)
    return "model", {**wire.container_from_wire(name, body), "path": "."}


def main() -> int:
    parser = argparse.ArgumentParser(description="fuzz the REST API")
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="operations whose name matches")
    options = parser.parse_args()
    with fuzzed() as world:
        report = run(world, requests=options.requests, seed=options.seed, only=options.only)
    print(report)
    return 1 if report.failures or report.errors else 0


if __name__ == "__main__":
    sys.exit(main())
