"""What the chart is told: every value has a default and a shape, and wrong ones are refused before
anything is made."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from .chart import CHART, EXAMPLES, KUBERNETES, documents, helm, one, template

pytestmark = pytest.mark.helm

SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())


@pytest.mark.parametrize("name", [None, *EXAMPLES])
def test_lint(name: str | None) -> None:
    values = ("--values", EXAMPLES[name]) if name else ()
    done = helm("lint", "--strict", CHART, "--kube-version", KUBERNETES, *values)
    assert done.returncode == 0, done.stdout + done.stderr


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return found


def differences(values: Any, schema: dict[str, Any], path: str = "") -> list[str]:
    """Where values.yaml and the schema name different things."""
    schema = resolved(schema)
    if "properties" not in schema:
        return []
    found = [] if schema.get("additionalProperties") is False else [f"{path}: takes unknown names"]
    found += [f"{path}.{name}: only in one of the two" for name in set(values) ^ set(schema["properties"])]
    for name in set(values) & set(schema["properties"]):
        found += differences(values[name], schema["properties"][name], f"{path}.{name}")
    return found


def test_the_schema_and_the_defaults_name_the_same_values() -> None:
    assert differences(VALUES, SCHEMA) == []


def test_every_value_is_explained() -> None:
    """A line of its own above each value of the two outer levels, or above the group that it
    belongs to."""
    lines = (CHART / "values.yaml").read_text().splitlines()
    groups = [n for n, line in enumerate(lines) if line and line[0].isalpha() and not line.endswith(":")]
    assert [lines[n] for n in groups if not lines[n - 1].startswith("#")] == []


#: (what is set beside the production example, what the refusal says)
REFUSED_BY_SCHEMA = [
    ("colour=blue", "colour"),
    ("controlplane.replica=3", "replica"),
    ("dataplane.service.typ=NodePort", "typ"),
    ("controlplane.replicas=0", "/controlplane/replicas"),
    ("dataplane.kind=StatefulSet", "/dataplane/kind"),
    ("dataplane.service.type=ExternalName", "/dataplane/service/type"),
    ("dataplane.service.port=70000", "/dataplane/service/port"),
    ("dataplane.drain.graceSeconds=-1", "/dataplane/drain/graceSeconds"),
    ("dataplane.hosts[0]=Scoring.Example", "/dataplane/hosts/0"),
    ("dataplane.url=http://scoring.example.com", "/dataplane/url"),
    ("controlplane.url=https://user@host", "/controlplane/url"),
    ("controlplane.logFormat=xml", "/controlplane/logFormat"),
    ("controlplane.resources.requests.cpu=much", "/controlplane/resources/requests/cpu"),
    ("images.triton.digest=sha256:12", "/images/triton/digest"),
    ("images.controlplane.tag=latest", "/images/controlplane/tag"),
    ("images.controlplane.pullPolicy=Sometimes", "/images/controlplane/pullPolicy"),
    ("models.s3.prefix=/a", "/models/s3/prefix"),
    ("models.persistence.accessMode=ReadOnlyMany", "/models/persistence/accessMode"),
    ("modelCache.type=nfs", "/modelCache/type"),
    ("modelCache.hostPath=relative", "/modelCache/hostPath"),
    ("tls.dataplane.source=acme", "/tls/dataplane/source"),
    ("limits.requestTimeoutMs=0", "/limits/requestTimeoutMs"),
    ("instanceTypes[0].name=a", "/instanceTypes/0"),
    ("networkPolicy.controlplane.egressPorts[0]=0", "/networkPolicy/controlplane/egressPorts/0"),
    ("monitoring.podMonitor.interval=often", "/monitoring/podMonitor/interval"),
    ("monitoring.serviceMonitor.interval=often", "/monitoring/serviceMonitor/interval"),
    ("global.imagePullSecret=mirror", "imagePullSecret"),
    ("rbac.create=perhaps", "/rbac/create"),
]  # fmt: skip


@pytest.mark.parametrize(("setting", "said"), REFUSED_BY_SCHEMA)
def test_the_schema_refuses(setting: str, said: str) -> None:
    done = template("--values", EXAMPLES["production"], "--set", setting)
    assert done.returncode != 0
    assert "values don't meet the specifications" in done.stderr
    assert said in done.stderr.replace(".", "/").replace("[", "/") or said in done.stderr


#: (example, settings, what the refusal says)
REFUSED_BY_TEMPLATES: list[tuple[str | None, list[str], str]] = [
    (None, [], "No database."),
    (None, ["database.sqlite.enabled=true", "controlplane.replicas=1"], "No place for models."),
    ("production", ["database.sqlite.enabled=true"], "More than one database"),
    ("production", ["models.persistence.enabled=true"], "Two places for models"),
    ("production", ["database.existingSecret.name=", "database.url=sqlite:///x"], "must begin with postgresql+psycopg://"),
    ("single", ["controlplane.replicas=2"], "SQLite is a file of one node"),
    ("trial", ["controlplane.replicas=2"], "models.persistence.accessMode=ReadWriteOnce"),
    ("trial", ["postgresql.acknowledgeTrial=false"], "That is for trials"),
    ("production", ["modelCache.type=hostPath"], "set modelCache.hostPath"),
    ("production", ["modelCache.type=image"], "set modelCache.image"),
    ("production", ["tls.dataplane.source=existingSecret"], "set tls.dataplane.existingSecret"),
    ("production", ["tls.dataplane.existingSecret=mine"], "Set the source to existingSecret"),
    ("production", ["tls.controlplane.source=certManager"], "set tls.controlplane.issuerRef.name"),
    ("production", ["controlplane.ingress.enabled=true"], "needs controlplane.hosts"),
    ("production", ["controlplane.service.type=LoadBalancer"], "networkPolicy.controlplane.ingressFrom"),
    ("production", ["gateway.enabled=true"], "needs gateway.parentRefs"),
    ("production", ["serviceAccount.create=false"], "serviceAccount.name must name an account"),
]  # fmt: skip


@pytest.mark.parametrize(("example", "settings", "said"), REFUSED_BY_TEMPLATES)
def test_combinations_that_cannot_work_are_refused(example: str | None, settings: list[str], said: str) -> None:
    values = ("--values", EXAMPLES[example]) if example else ()
    done = template(*values, *(part for setting in settings for part in ("--set", setting)))
    assert done.returncode != 0
    assert said in done.stderr


def test_an_old_kubernetes_is_refused() -> None:
    assert "requires kubeVersion" in template("--values", EXAMPLES["production"], kubernetes="1.29.9").stderr


#: (settings beside the production example, kind, name, path, value)
HONOURED = [
    (["dataplane.drain.graceSeconds=20"], "Deployment", "amphitrite-dataplane", "terminationGracePeriodSeconds", 45),
    (["controlplane.priorityClassName=high"], "Deployment", "amphitrite-controlplane", "priorityClassName", "high"),
    (["global.imagePullSecrets[0]=a"], "Deployment", "amphitrite-dataplane", "imagePullSecrets", [{"name": "a"}]),
    (["dataplane.tolerations[0].key=k"], "Deployment", "amphitrite-dataplane", "tolerations", [{"key": "k"}]),
    (["controlplane.nodeSelector.a=b"], "Deployment", "amphitrite-controlplane", "nodeSelector", {"a": "b"}),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "kind", "name", "field", "value"), HONOURED)
def test_values_reach_their_pods(settings: list[str], kind: str, name: str, field: str, value: object) -> None:
    arguments = [part for setting in settings for part in ("--set", setting)]
    rendered = documents("--values", EXAMPLES["production"], *arguments)
    assert one(rendered, kind, name)["spec"]["template"]["spec"][field] == value
