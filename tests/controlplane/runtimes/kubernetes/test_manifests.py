"""The objects of a workload, side by side with their inputs in ``golden/``, and judged by each
version's own schemas.

``pytest --update-golden`` rewrites them and deletes those without an input.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from amphitrite.controlplane.core.capacity.node_capacity import quantity
from amphitrite.controlplane.core.desired.resources import is_complete
from amphitrite.controlplane.runtimes.kubernetes.workloads import earlier_layout, workload_manifests
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import NAME_MAX, SPEC_ANNOTATION, object_name
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_settings import TRITON_IMAGE
from amphitrite.controlplane.runtimes.kubernetes.workloads.workload_json import from_json, to_json
from amphitrite.schemas.errors import Error

from ....kubernetes_schemas import offences
from .golden_inputs import CASES, Case

GOLDEN = Path(__file__).parent / "golden"
#: All inputs are judged by the oldest and the newest version, and by those between the inputs that
#: use most of the API.
WITH_MOST_FIELDS = ("everything-from-yaml", "image-volume")
VERSIONS = [f"1.{minor}" for minor in range(30, 38)]


def made(case: Case) -> list[dict[str, Any]]:
    return [
        workload_manifests.deployment(case.workload, case.settings, case.timeout_s),
        *workload_manifests.dependents(case.workload, case.settings, "uid-of-the-deployment"),
        workload_manifests.disruption_budget(case.workload, case.settings, "uid-of-the-deployment"),
    ]


@pytest.mark.parametrize("name", CASES)
def test_manifests_are_as_recorded(name: str, request: pytest.FixtureRequest) -> None:
    plain = json.loads(json.dumps(made(CASES[name])))  # Nothing shared: YAML would write anchors.
    text = yaml.safe_dump_all(plain, sort_keys=True, width=120)
    path = GOLDEN / f"{name}.yaml"
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    assert path.read_text() == text


def test_every_golden_file_has_an_input(request: pytest.FixtureRequest) -> None:
    orphans = {path for path in GOLDEN.glob("*.yaml") if path.stem not in CASES}
    if request.config.getoption("--update-golden"):
        for path in orphans:
            path.unlink()
        return
    assert not orphans


@pytest.mark.parametrize(
    ("name", "version"),
    [(n, v) for n in CASES for v in VERSIONS if v in VERSIONS[:: len(VERSIONS) - 1] or n in WITH_MOST_FIELDS],
)
def test_each_supported_version_of_kubernetes_knows_every_field(name: str, version: str) -> None:
    # Image volumes are there from 1.31 on; without them, that cache cannot be chosen.
    if (name, version) == ("image-volume", "1.30"):
        assert offences(made(CASES[name])[0], version)
        return
    for one in made(CASES[name]):
        assert offences(one, version) == []


def test_a_workload_survives_as_json() -> None:
    for case in CASES.values():
        assert from_json(to_json(case.workload)) == case.workload
    for text in ("", "[]", "{}", '{"pod": 1}'):
        with pytest.raises(ValueError):
            from_json(text)


@pytest.mark.parametrize("name", CASES)
def test_variables_and_the_grant_are_in_the_secret_alone(name: str) -> None:
    case = CASES[name]
    secret = [text for _, text in case.workload.environment_variables]
    secret += [] if case.settings.cache.kind == "image" else [case.settings.grant(case.workload)]
    secrets, others = [], []
    for one in made(case):
        (secrets if one["kind"] == "Secret" else others).append(one)
    shown = json.dumps(others)
    assert [text for text in secret if json.dumps(text)[1:-1] in shown] == []
    kept = [base64.b64decode(text).decode() for one in secrets for text in one["data"].values()]
    assert sorted(kept) == sorted(secret)
    assert all(one["metadata"]["ownerReferences"][0]["kind"] == "Deployment" for one in secrets)


@pytest.mark.parametrize("name", CASES)
def test_every_volume_on_a_nodes_disk_or_memory_is_bounded(name: str) -> None:
    case = CASES[name]
    pod = made(case)[0]["spec"]["template"]["spec"]
    directories = {v["name"]: v["emptyDir"] for v in pod["volumes"] if "emptyDir" in v}
    assert {"tmp", "shm"} <= set(directories)
    assert [name for name, volume in directories.items() if "sizeLimit" not in volume] == []
    disk = sum(quantity(volume["sizeLimit"]) for volume in directories.values() if "medium" not in volume)
    for container in (*pod.get("initContainers", ()), *pod["containers"]):
        for side in ("requests", "limits"):
            assert ("ephemeral-storage" in container["resources"][side]) == case.settings.storage_requests
        if case.settings.storage_requests:
            assert quantity(container["resources"]["limits"]["ephemeral-storage"]) == disk


@pytest.mark.parametrize("name", CASES)
def test_only_proxies_reach_the_ports_for_scoring(name: str) -> None:
    case = CASES[name]
    for policy in (one for one in made(case) if one["kind"] == "NetworkPolicy"):
        scoring = policy["spec"]["ingress"][0]
        (peer,) = scoring["from"]
        assert peer["podSelector"]["matchLabels"] == dict(case.settings.proxy_selector or ())
        home = peer["namespaceSelector"].get("matchLabels")
        assert home == ({"kubernetes.io/metadata.name": "ml"} if case.settings.proxy_namespace else None)
        metrics = [rule for rule in policy["spec"]["ingress"][1:] if {"port": 8002, "protocol": "TCP"} in rule["ports"]]
        assert bool(metrics) == (case.settings.metrics_from != () and case.workload.container is None)


def test_a_digest_hides_neither_tritons_release_nor_that_it_is_the_default() -> None:
    digest = f"@sha256:{'cd' * 32}"
    case = CASES["triton-by-digest"]
    server = made(case)[0]["spec"]["template"]["spec"]["containers"][0]
    assert server["image"].endswith(digest)
    assert f"--http-max-input-size={case.settings.max_input_bytes}" in server["args"]
    pinned = replace(case.settings, triton_image=f"{TRITON_IMAGE}{digest}")
    old = replace(case.settings.shape("any"), triton_tag="24.10-py3")
    assert pinned.image_for(case.settings.shape("any")) == f"{TRITON_IMAGE}{digest}"
    assert pinned.image_for(old).endswith(":24.10-py3")


def test_variables_of_an_earlier_release_are_taken_out_of_the_annotation() -> None:
    case = CASES["everything-from-yaml"]
    made_now = workload_manifests.deployment(case.workload, case.settings, 5.0)
    assert earlier_layout.deployment_patch(made_now) is None
    recorded = json.loads(made_now["metadata"]["annotations"][SPEC_ANNOTATION])
    recorded["environment_variables"] = [["PASSWORD", "a secret"]]
    made_then = {"metadata": {"annotations": {SPEC_ANNOTATION: json.dumps(recorded)}}}
    assert earlier_layout.deployment_patch(made_then) == {
        "metadata": {"annotations": {SPEC_ANNOTATION: made_now["metadata"]["annotations"][SPEC_ANNOTATION]}}
    }
    for broken in ("", "[]", "{}", '{"environment_variables": [1]}'):
        assert earlier_layout.deployment_patch({"metadata": {"annotations": {SPEC_ANNOTATION: broken}}}) is None


def test_a_workload_from_the_cluster_is_never_made_again_without_its_variables() -> None:
    workload = CASES["everything-from-yaml"].workload
    assert is_complete(workload)
    assert not is_complete(from_json(to_json(workload)))
    assert is_complete(from_json(to_json(CASES["cpu"].workload)))


def test_names_fit_and_stay_apart() -> None:
    names = {object_name(case.workload) for case in CASES.values()}
    assert max(map(len, names)) <= NAME_MAX
    assert len(names) == len({case.workload.name for case in CASES.values()})


def test_what_no_kubelet_can_do_is_refused() -> None:
    case = CASES["everything-from-yaml"]
    assert case.workload.pod is not None
    assert case.workload.pod.liveness is not None
    pod = replace(case.workload.pod, liveness=replace(case.workload.pod.liveness, success_threshold=2))
    with pytest.raises(Error, match=r"success_threshold is 2; on Kubernetes it must be 1"):
        workload_manifests.deployment(replace(case.workload, pod=pod), case.settings, 5.0)
