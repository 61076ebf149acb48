"""Every field of a deployment document has one place: it replaces instances, changes in place, or is refused."""

from __future__ import annotations

from typing import Any

import pytest

from amphitrite import schemas
from amphitrite.controlplane.core.resources import Deployment, deployment_from_document
from amphitrite.controlplane.core.rollout import IN_PLACE, REPLACES
from amphitrite.controlplane.core.unsupported import in_deployment

from .builders import model

#: What a document is about, and what only answers carry.
IDENTITY = {"$schema", "name", "endpoint_name", "type"}
READ_ONLY = {"id", "provisioning_state", "creation_context", "status"}
#: A value of each field that is refused; other values of some of them mean what happens anyway.
REFUSED: dict[str, Any] = {
    "app_insights_enabled": True,
    "code_configuration": {"code": ".", "scoring_script": "score.py"},
    "data_collector": {"collections": {"request": {"enabled": "true"}}},
    "egress_public_network_access": "disabled",
    "environment": "azureml:e:1",
    "model_mount_path": "/models",
    "private_network_connection": True,
    "scale_settings": {"type": "target_utilization"},
}
BASE = {"name": "blue", "endpoint_name": "cats", "instance_type": "Standard_DS3_v2", "instance_count": 1}
CHANGED: dict[str, Any] = {
    "environment_variables": {"A": "b"},
    "instance_type": "Standard_F2s_v2",
    "description": "other",
    "instance_count": 2,
    "liveness_probe": {"period": 3},
    "properties": {"amphitrite.scoring_model": "m"},
    "readiness_probe": {"period": 3},
    "request_settings": {"request_timeout_ms": 1},
    "tags": {"a": "b"},
}


def wanted(document: dict[str, Any], version: int = 1) -> Deployment:
    return deployment_from_document(
        document,
        endpoint="cats",
        model=model(version),
        generation=1,
        observed_generation=0,
        deleting=False,
        ever_succeeded=False,
        changed_at=0.0,
    )


def test_each_field_of_the_schema_has_one_place() -> None:
    places = [IDENTITY, READ_ONLY, set(REFUSED), set(REPLACES), set(IN_PLACE)]
    together = [field for place in places for field in place]
    assert sorted(together) == sorted(schemas.load("managed_online_deployment")["properties"])


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
