"""Where the chart repeats what the program says, both say the same: settings, flags, rights,
versions."""

from __future__ import annotations

import ast
import inspect
import json
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

from amphitrite.controlplane.runtimes.kubernetes.client.permissions import CLUSTER_RULES, RULES, Rule
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_settings import TRITON_IMAGE
from amphitrite.controlplane.settings import cluster_settings, token_settings
from amphitrite.controlplane.settings import settings as controlplane_settings
from amphitrite.controlplane.settings.version import VERSION
from amphitrite.dataplane.agent import settings as dataplane_settings
from amphitrite.schemas import documents as schemas
from amphitrite.schemas.documents.schema_files import resolve

from .chart import CHART, EXAMPLES, ROOT, Document, containers, documents, example, one

pytestmark = pytest.mark.helm

each_example = pytest.mark.parametrize("name", EXAMPLES)


def environment(rendered: list[Document]) -> dict[str, str]:
    """What the control plane is told; a value from a Secret or a field is a placeholder of the
    right form."""
    stand_ins = {"ML_DATABASE_URL": "postgresql+psycopg://u:p@h/d"}
    listed = containers(rendered)["Deployment/amphitrite-controlplane/controlplane"]["env"]
    return {e["name"]: e.get("value", stand_ins.get(e["name"], "given")) for e in listed}


@each_example
def test_the_control_plane_takes_its_environment(name: str, tmp_path: Path) -> None:
    told = {**environment(example(name)), cluster_settings.IN_CLUSTER: "10.0.0.1"}
    # Directories must be there.
    told |= {variable: str(tmp_path) for variable in told if variable.endswith("_DIRECTORY")}
    settings = controlplane_settings.read(told)
    assert (settings.runtime, settings.dataplane, settings.log_to) == ("kubernetes", "external", "stdout")
    assert settings.cluster.kubeconfig is None
    lease = None if name == "single" else "amphitrite-controlplane"
    assert settings.cluster.lease_name == lease
    assert [d["metadata"]["name"] for d in example(name) if d["kind"] == "Lease"] == ([lease] if lease else [])
    labels = one(example(name), *proxies(name))["spec"]["template"]["metadata"]["labels"]
    assert settings.cluster.proxy_selector.items() <= labels.items()


def proxies(name: str) -> tuple[str, str]:
    kind = "DaemonSet" if name.startswith("daemonset") else "Deployment"
    return kind, "amphitrite-dataplane"


@each_example
def test_no_variable_is_set_that_nobody_reads(name: str) -> None:
    """A name that is misspelt would be silently without effect."""
    read = {
        node.value
        for module in (controlplane_settings, cluster_settings, token_settings)
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    read |= {controlplane_settings.Limits.variable(limit) for limit in controlplane_settings.Limits.__slots__}
    told = {variable for variable in environment(example(name)) if variable.startswith("ML_")}
    assert told <= read


def test_the_defaults_of_tokens_are_the_programs() -> None:
    told = {n: v for n, v in environment(example("production")).items() if n.startswith("ML_SCORING_T")}
    assert token_settings.read(told) == token_settings.TokenSettings()
    assert len(told) == 2


def test_the_defaults_of_limits_are_the_programs() -> None:
    told = environment(example("production"))
    limits = controlplane_settings.Limits
    assert {n: v for n, v in told.items() if n.startswith("ML_LIMIT_")} == {
        limits.variable(name): str(getattr(limits(), name)) for name in limits.__slots__
    }


@each_example
def test_the_agent_takes_its_flags(name: str) -> None:
    kind, workload = proxies(name)
    arguments = containers(example(name))[f"{kind}/{workload}/dataplane"]["args"]
    settings = dataplane_settings.parse([a.replace("$(POD_NAME)", "proxy-0") for a in arguments])
    assert (settings.proxy.id, settings.proxy.listen.port, settings.proxy.logs) == ("proxy-0", 9443, None)
    assert settings.control_plane.url == "https://amphitrite-controlplane.ml.svc:8443"


@each_example
def test_every_path_that_is_named_is_mounted(name: str) -> None:
    """Whatever a container is told to read or write lies in one of its volumes."""
    for where, container in containers(example(name)).items():
        mounts = [Path(mount["mountPath"]) for mount in container["volumeMounts"]]
        told = [*container.get("args", ()), *container.get("command", ())]
        told += [f"={e['value']}" for e in container.get("env", ()) if "value" in e]
        for text in told:
            path = text.rpartition("=")[2] if "=" in text else text
            if path.startswith("/"):
                assert any(mount == Path(path) or mount in Path(path).parents for mount in mounts), (where, text)


def test_instance_types_are_a_document_of_the_program() -> None:
    data = one(example("gpu-cache"), "ConfigMap", "amphitrite-instance-types")["data"]
    document = yaml.safe_load(data["instance-types.yaml"])
    assert [entry["name"] for entry in document["instance_types"]] == ["a100", "a100-small"]
    assert schemas.validate("instance_types", document) == []


def test_the_schema_of_the_values_knows_every_field_of_an_instance_type() -> None:
    values = json.loads((CHART / "values.schema.json").read_text())
    ours = values["properties"]["instanceTypes"]["items"]["properties"]
    document = schemas.load("instance_types")
    theirs = resolve(resolve(document["properties"]["instance_types"], document)["items"], document)["properties"]
    assert set(ours) == set(theirs)


def rules_of(role: Document) -> set[tuple[str, str, str, str]]:
    """(group, resource, verb, name or "")."""
    return {
        (group, resource, verb, name)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }


def needed(rules: tuple[Rule, ...]) -> set[tuple[str, str, str, str]]:
    return {(rule.group, rule.resource, verb, "") for rule in rules for verb in rule.verbs}


@each_example
def test_the_role_is_what_the_program_needs(name: str) -> None:
    election = {("coordination.k8s.io", "leases", verb, "amphitrite-controlplane") for verb in ("get", "patch")}
    table = {("", "secrets", verb, "amphitrite-routing-table") for verb in ("get", "patch")}
    wanted = needed(RULES) | table | (set() if name == "single" else election)
    assert rules_of(one(example(name), "Role", "amphitrite-controlplane")) == wanted


@each_example
def test_the_right_to_count_room_is_an_option(name: str) -> None:
    given = [rules_of(d) for d in example(name) if d["kind"] == "ClusterRole"]
    assert given == ([] if name == "air-gapped" else [needed(CLUSTER_RULES)])


def test_versions_are_the_programs() -> None:
    chart: dict[str, Any] = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["appVersion"], chart["version"]) == (VERSION, VERSION)
    values: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    triton = values["images"]["triton"]
    assert f"{triton['registry']}/{triton['repository']}:{triton['tag']}" == TRITON_IMAGE


def test_the_model_of_helm_test_is_what_its_script_writes() -> None:
    written = runpy.run_path(str(ROOT / "deploy" / "helm" / "test_model.py"))
    assert written["FILE"].read_bytes() == written["content"]()


@pytest.mark.parametrize("script", ["score.py", "clean_up.py"])
def test_scripts_run_on_the_oldest_python(script: str) -> None:
    ast.parse((CHART / "files" / script).read_text(), feature_version=(3, 10))


def test_a_prefix_keeps_two_releases_apart() -> None:
    """Of what is not in a namespace, nothing has the same name in both."""
    names = [
        {
            d["metadata"]["name"]
            for d in documents("--values", EXAMPLES["production"], "--set", f"fullnameOverride={name}")
        }
        for name in ("one", "two")
    ]
    assert names[0] & names[1] == set()
