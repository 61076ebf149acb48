"""Every field of a deployment document has one place: it replaces instances, changes in place, is
noted, or is refused."""

from __future__ import annotations

from typing import Any

import pytest

from amphitrite.controlplane.core.desired.containers import Container
from amphitrite.controlplane.core.desired.resources import LOCAL, Deployment, deployment_from_document
from amphitrite.controlplane.core.planning.rollout import IN_PLACE, REPLACES, REPLACES_PODS
from amphitrite.controlplane.core.rules.unsupported_fields import in_deployment
from amphitrite.schemas import documents

from .builders import model

#: What a document is about, and what only answers carry.
IDENTITY = {"$schema", "name", "endpoint_name", "type"}
READ_ONLY = {"id", "provisioning_state", "creation_context", "status"}
#: A value of each field that is refused; other values of some of them mean what happens anyway.
REFUSED: dict[str, Any] = {
    "code_configuration": {"code": ".", "scoring_script": "score.py"},
    "data_collector": {"collections": {"request": {"enabled": "true"}}},
    "egress_public_network_access": "disabled",
    "model_mount_path": "/models",
    "private_network_connection": True,
}
#: Stored, with a note, and without an effect.
NOTED = {"app_insights_enabled"}
CONTAINER = Container("tritonserver", 8000, "/v2/health/live", "/v2/health/ready", "/", "/models", "m", "")
BASE = {"name": "blue", "endpoint_name": "cats", "instance_type": "Standard_DS3_v2", "instance_count": 1}
CHANGED: dict[str, Any] = {
    "environment": CONTAINER,
    "environment_variables": {"A": "b"},
    "instance_type": "Standard_F2s_v2",
    "description": "other",
    "instance_count": 2,
    "liveness_probe": {"period": 3},
    "properties": {"amphitrite.scoring_model": "m"},
    "readiness_probe": {"period": 3},
    "request_settings": {"request_timeout_ms": 1},
    "scale_settings": {"type": "target_utilization"},
    "tags": {"a": "b"},
}
#: On a cluster that the endpoint names.
ON_CLUSTER: dict[str, Any] = {**BASE, "type": "kubernetes"}
REFUSED_ON_CLUSTER = set(REFUSED) - {"egress_public_network_access", "model_mount_path", "private_network_connection"}
CHANGED_ON_CLUSTER: dict[str, Any] = {
    **CHANGED,
    "model_mount_path": "/models",
    "resources": {"requests": {"cpu": "2"}},
}


def wanted(document: dict[str, Any], version: int = 1, compute: str = LOCAL) -> Deployment:
    """``environment`` stands for what it was resolved to."""
    return deployment_from_document(
        document,
        endpoint="cats",
        model=model(version),
        container=document.get("environment"),
        compute=compute,
        generation=1,
        observed_generation=0,
        deleting=False,
        ever_succeeded=False,
        changed_at=0.0,
    )


def test_each_field_of_the_schema_has_one_place() -> None:
    places = [IDENTITY, READ_ONLY, NOTED, set(REFUSED), set(REPLACES), set(IN_PLACE)]
    together = [field for place in places for field in place]
    assert sorted(together) == sorted(documents.load("managed_online_deployment")["properties"])


@pytest.mark.parametrize("field", sorted(REFUSED))
def test_a_refused_field_is_named(field: str) -> None:
    violations = in_deployment({**BASE, field: REFUSED[field]})
    assert [v.path[0] for v in violations] == [field]
    assert all(v.hint for v in violations)


@pytest.mark.parametrize("field", sorted(REPLACES | IN_PLACE))
def test_only_a_replacing_field_makes_another_workload(field: str) -> None:
    before = wanted(BASE)
    after = wanted(BASE, 2) if field == "model" else wanted({**BASE, field: CHANGED[field]})
    assert (before.workload.name != after.workload.name) == (field in REPLACES)


def test_each_field_of_a_kubernetes_deployment_has_one_place() -> None:
    places = [IDENTITY, READ_ONLY, NOTED, REFUSED_ON_CLUSTER, REPLACES | REPLACES_PODS, IN_PLACE - REPLACES_PODS]
    together = [field for place in places for field in place]
    assert sorted(together) == sorted(documents.load("kubernetes_online_deployment")["properties"])


@pytest.mark.parametrize("field", sorted(REFUSED))
def test_what_has_a_meaning_on_a_cluster_alone_is_honoured_there(field: str) -> None:
    found = [v.path[0] for v in in_deployment({**ON_CLUSTER, field: REFUSED[field]}, on_cluster=True)]
    assert found == ([] if field in REPLACES_PODS else [field])


@pytest.mark.parametrize("field", sorted(REPLACES | REPLACES_PODS | IN_PLACE))
def test_on_a_cluster_what_pods_are_made_with_makes_another_workload(field: str) -> None:
    before = wanted(ON_CLUSTER, compute="k8s")
    after = wanted({**ON_CLUSTER, **({field: CHANGED_ON_CLUSTER[field]} if field != "model" else {})}, compute="k8s")
    if field == "model":
        after = wanted(ON_CLUSTER, 2, "k8s")
    assert (before.workload.name != after.workload.name) == (field in REPLACES | REPLACES_PODS)


def test_the_workload_says_where_it_runs() -> None:
    assert wanted(BASE).workload.name != wanted(BASE, compute="k8s").workload.name
    pod = wanted({**BASE, "resources": {"limits": {"gpu": "1"}}}, compute="k8s").workload.pod
    assert pod is not None
    assert pod.limits == (("nvidia.com/gpu", "1"),)
