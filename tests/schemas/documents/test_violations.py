"""One line for each message: what is found, what is allowed, what was probably meant."""

from __future__ import annotations

from typing import Any

import pytest

from amphitrite.schemas import documents

EP = {"name": "my-ep"}
BLUE = {"name": "blue", "endpoint_name": "my-ep", "instance_type": "Standard_DS3_v2"}
K8S = {"name": "blue", "endpoint_name": "my-ep", "type": "kubernetes"}
NAME = (
    "a name has 3 to 32 characters: it starts with a letter, goes on with letters, digits and hyphens, "
    "and does not end with a hyphen"
)
REFERENCE = "write azureml:<name>:<version> or azureml:<name>@latest"

#: kind, document, what is wrong (path: message | hint)
ROWS: list[tuple[str, Any, list[str]]] = [
    ("managed_online_endpoint", {}, ["name: required, but missing"]),
    ("managed_online_endpoint", [], ["must be a mapping; found a list"]),
    ("managed_online_endpoint", {"name": None},
     ["name: must be text; found nothing | set a value, or remove the field"]),
    ("managed_online_endpoint", {"name": "ep"}, [f'name: must have at least 3 characters; found "ep" | {NAME}']),
    ("managed_online_endpoint", {"name": "my-"}, [f'name: found "my-"; allowed: {NAME}']),
    ("managed_online_endpoint", {"name": "my-ep\n"}, [f'name: found "my-ep\\n"; allowed: {NAME}']),
    ("managed_online_endpoint", {"name": "a" * 33},
     [f'name: must have at most 32 characters; found "{"a" * 33}" | {NAME}']),
    ("managed_online_endpoint", {**EP, "auth_mode": "kye"},
     ['auth_mode: must be one of key, aml_token, aad_token; found "kye" | did you mean "key"?']),
    ("managed_online_endpoint", {**EP, "authMode": "key"}, ['authMode: unknown field | did you mean "auth_mode"?']),
    ("managed_online_endpoint", {**EP, "traffic": {"blue": 60, "green": 30}},
     ["traffic: the percentages must sum to 0 or 100; found blue=60, green=30, which sum to 90 | add 10 percent"]),
    ("managed_online_endpoint", {**EP, "traffic": {"blue": 101}}, ["traffic.blue: must be at most 100; found 101"]),
    ("managed_online_endpoint", {**EP, "traffic": {"blue": "some"}},
     ['traffic.blue: must be a whole number; found "some"']),
    ("managed_online_endpoint", {**EP, "traffic": {"blue": 50, "Blue": 50}},
     ['traffic.Blue: "Blue" is the same name as "blue", because case is ignored | remove one of the two']),
    ("managed_online_endpoint", {**EP, "traffic": {"b!": 100}},
     [f'traffic.b!: found "b!"; allowed: {NAME}', f'traffic.b!: must have at least 3 characters; found "b!" | {NAME}']),
    ("managed_online_endpoint", {**EP, "mirror_traffic": {"blue": 101}},
     ["mirror_traffic.blue: must be at most 100; found 101"]),
    ("managed_online_endpoint", {**EP, "mirror_traffic": {"blue": 5, "green": 100}}, []),
    ("managed_online_endpoint", {**EP, "mirror_traffic": {"blue": 5, "Blue": 6}},
     ['mirror_traffic.Blue: "Blue" is the same name as "blue", because case is ignored | remove one of the two']),
    ("managed_online_endpoint", {**EP, "traffic": {"blue": 100}, "mirror_traffic": {"Blue": 5}},
     ["mirror_traffic.Blue: Blue has live traffic; a deployment cannot have both live and mirrored traffic"
      " | set Blue to 0 in traffic or in mirror_traffic"]),
    ("managed_online_endpoint", {**EP, "identity": {"type": "user_assigned"}},
     ["identity.user_assigned_identities: required for type user_assigned, but missing"
      " | add the resource_id of the identity"]),
    ("kubernetes_online_endpoint", {**EP, "compute": "k8s"},
     ['compute: found "k8s"; allowed: write azureml:<name of the attached compute> or its ARM id'
      ' | did you mean "azureml:k8s"?']),
    ("kubernetes_online_endpoint", {**EP, "compute": "azureml:k8s", "public_network_access": "enabled"},
     ["public_network_access: unknown field | remove it; only documents without compute have this field"]),
    ("managed_online_deployment", {**BLUE, "model": "m:1"},
     [f'model: found "m:1"; allowed: {REFERENCE} | did you mean "azureml:m:1"?']),
    ("managed_online_deployment", {**BLUE, "model": "azureml:m"},
     [f'model: found "azureml:m"; allowed: {REFERENCE} | did you mean "azureml:m@latest"?']),
    ("managed_online_deployment", {**BLUE, "model": 5}, ["model: must be text or a mapping; found 5"]),
    ("managed_online_deployment", {**BLUE, "model": {"path": ".", "type": "triton"}},
     ['model.type: must be one of custom_model, mlflow_model, triton_model; found "triton"'
      ' | did you mean "triton_model"?']),
    ("managed_online_deployment", {**BLUE, "model": {"path": ".", "version": 1}},
     ["model.version: requires name, which is missing | add name, or remove version"]),
    ("managed_online_deployment", {**BLUE, "resources": {}},
     ["resources: unknown field | remove it; only documents with type: kubernetes have this field"]),
    ("managed_online_deployment", {**BLUE, "scale_settings": {"type": "target_utilisation"}},
     ['scale_settings.type: must be one of default, target_utilization; found "target_utilisation"'
      ' | did you mean "target_utilization"?']),
    ("managed_online_deployment", {**BLUE, "scale_setting": {"type": "target_utilization"}},
     ['scale_setting: unknown field | did you mean "scale_settings"?']),
    ("managed_online_deployment", {**BLUE, "scale_settings": {"type": "target_utilization", "min_instances": 2}},
     ["scale_settings.min_instances: must be at most max_instances 1; found 2"]),
    ("managed_online_deployment", {**BLUE, "request_settings": {"request_timeout_ms": 86_400_001}},
     ["request_settings.request_timeout_ms: must be at most 86400000; found 86400001"
      " | milliseconds, from 1 to 86400000 (a day)"]),
    ("managed_online_deployment", {**BLUE, "environment_variables": {"A=B": "1", "": "2"}},
     ['environment_variables.: found ""; allowed: at least one character, and no =',
      'environment_variables.A=B: found "A=B"; allowed: at least one character, and no =']),
    ("managed_online_deployment", {**BLUE, "environment_variables": {"A": "secret\0"}},
     ["environment_variables.A: must not contain NUL or an unpaired surrogate"]),
    ("managed_online_deployment", {**BLUE, "data_collector": {"collections": {}, "sampling_rate": float("nan")}},
     ['data_collector.sampling_rate: must be a number; found "nan"']),
    ("kubernetes_online_deployment", {**K8S, "resources": {"requests": {"cpu": 1}}},
     ["resources.requests.cpu: must be text; found 1 | quantities are text: quote them"]),
    ("kubernetes_online_deployment", {**K8S, "scale_settings": {"type": "default", "min_instances": 1}},
     ["scale_settings.min_instances: not allowed for type default | set type to target_utilization"]),
    ("model", {"name": "bad name!", "path": "."},
     ['name: found "bad name!"; allowed: up to 255 letters, digits, hyphens, underscores and points,'
      " the first a letter or a digit"]),
    ("environment", {"name": "env"},
     ["image: required, but missing | add the container image, with registry and tag"]),
    ("environment", {"name": "env", "image": "i:1", "conda_file": "c.yml", "build": {"path": "."}},
     ["conda_file: not allowed together with build | remove one of the two",
      "image: not allowed together with build | remove one of the two"]),
    ("environment", {"name": "env", "image": "i:1", "inference_config": {"scoring_route": {"port": 0, "path": "/"}}},
     ["inference_config.liveness_route: required, but missing",
      "inference_config.readiness_route: required, but missing",
      "inference_config.scoring_route.port: must be at least 1; found 0"]),
    ("legacy_endpoint", {**EP, "deployments": [{"name": "blue", "instance_type": "x", "model": 5}, 7]},
     ["deployments[0].model: must be text or a mapping; found 5", "deployments[1]: must be a mapping; found 7"]),
    ("legacy_endpoint", {**EP, "deployments": [{**BLUE, "endpoint_name": "other"}, {**BLUE, "name": "BLUE"}]},
     ['deployments[0].endpoint_name: must be "my-ep" or absent; found "other" | remove it',
      'deployments[1].name: "BLUE" is the same name as "blue", because case is ignored | remove one of the two']),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "document", "want"), ROWS)
def test_message(kind: str, document: object, want: list[str]) -> None:
    found = documents.validate(kind, document)
    assert [f"{violation} | {violation.hint}" if violation.hint else str(violation) for violation in found] == want


def test_everything_wrong_is_said_at_once() -> None:
    document = {"name": "b!ue", "instanceCount": 1, "instance_count": 0, "tags": 1, "request_settings": {"timeout": 1}}
    paths = [violation.dotted for violation in documents.validate("managed_online_deployment", document)]
    assert paths == [
        "endpoint_name",
        "instanceCount",
        "instance_count",
        "instance_type",
        "name",
        "request_settings.timeout",
        "tags",
    ]


def test_deep_nesting_is_refused_before_anything_walks_it() -> None:
    deep: Any = "end"
    for _ in range(5_000):
        deep = [deep]
    assert [
        str(violation) for violation in documents.validate("model", {"name": "m", "path": ".", "flavors": deep})
    ] == ["flavors: the nesting is too deep; allowed: 64 levels"]
