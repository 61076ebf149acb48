"""An update of one field leaves every other one of the resource as it was, also those that ``show``
does not print.

The verbs' own code against a server that keeps what it is sent. Documents have any of the fields
that there are.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amphitrite.cli.assets import model_changes
from amphitrite.cli.documents import edits
from amphitrite.cli.documents.edits import Edit
from amphitrite.cli.resources import resource_changes
from amphitrite.cli.session.rest_client import Client
from amphitrite.cli.session.session import Session
from amphitrite.cli.terminal.options import Options, Scope
from amphitrite.schemas import wire
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import compute_id, deployment_id, endpoint_id, model_id, workspace_id

WORKSPACE = workspace_id("s", "g", "w")
WORDS = st.text("abcxyz-_ 0é", min_size=1, max_size=6)
MAPS = st.dictionaries(WORDS, WORDS, max_size=3)
PROBE = st.fixed_dictionaries(
    {},
    optional={
        "initial_delay": st.integers(0, 90),
        "period": st.integers(1, 90),
        "timeout": st.integers(1, 90),
        "success_threshold": st.integers(1, 3),
        "failure_threshold": st.integers(1, 90),
    },
)
ENDPOINTS = st.fixed_dictionaries(
    {"name": st.just("ep-1"), "auth_mode": st.sampled_from(["key", "aml_token", "aad_token"])},
    optional={
        "description": WORDS,
        "tags": MAPS,
        "properties": MAPS,
        "traffic": st.sampled_from([{"blue": 100}, {"blue": 90, "gold": 10}]),
        "mirror_traffic": st.just({"green": 10}),
        "public_network_access": st.sampled_from(["enabled", "disabled"]),
        "identity": st.sampled_from(
            [
                {"type": "system_assigned"},
                {"type": "user_assigned", "user_assigned_identities": [{"resource_id": "/r"}]},
            ]
        ),
    },
)
DEPLOYMENTS = st.fixed_dictionaries(
    {
        "name": st.just("blue"),
        "endpoint_name": st.just("ep-1"),
        "model": st.just(f"azureml:{model_id(WORKSPACE, 'm', '1')}"),
        "instance_type": st.just("Standard_DS3_v2"),
    },
    optional={
        "description": WORDS,
        "tags": MAPS,
        "properties": MAPS,
        "instance_count": st.integers(0, 9),
        "model_mount_path": st.just("/models"),
        "environment_variables": st.dictionaries(st.text("ABC", min_size=1, max_size=4), WORDS, max_size=3),
        "app_insights_enabled": st.booleans(),
        "request_settings": st.fixed_dictionaries(
            {}, optional={"request_timeout_ms": st.integers(1, 90_000), "max_queue_wait_ms": st.integers(1, 9_000)}
        ),
        "liveness_probe": PROBE,
        "readiness_probe": PROBE,
        "egress_public_network_access": st.sampled_from(["enabled", "disabled"]),
        "data_collector": st.just({"collections": {"in": {"enabled": "true"}}, "sampling_rate": 0.5}),
    },
)
MODELS = st.fixed_dictionaries(
    {"name": st.just("m"), "version": st.just("1"), "type": st.sampled_from(["triton_model", "custom_model"])},
    optional={
        "description": WORDS,
        "tags": MAPS,
        "properties": MAPS,
        "stage": WORDS,
        "flavors": st.just({"onnx": {"v": "1"}}),
    },
)


class Keeping(httpx.BaseTransport):
    """One resource: GET answers with what the last PUT brought, and what every server adds."""

    def __init__(self, path: str, body: dict[str, Any]) -> None:
        self.path, self.body = path, body

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        assert request.url.path == self.path
        if request.method == "PUT":
            self.body = json.loads(request.read())
        named = {"id": self.path, "name": self.path.rpartition("/")[2], "systemData": {"createdAt": "2026-11-21"}}
        return httpx.Response(200, json={**self.body, **named}, headers={"ETag": "1"})


def updated(path: str, body: dict[str, Any], verb: Callable[[Session], object]) -> dict[str, Any]:
    """What the resource is after ``verb``."""
    keeping = Keeping(path, body)
    with httpx.Client(transport=keeping, base_url="https://127.0.0.1") as http:
        verb(Session(Options(only_show_errors=True), lambda options: Client(http, Scope("s", "g", "w"))))
    return said(keeping.body)  # type: ignore[no-any-return]


def said(body: Any) -> Any:
    """``body`` without empty objects, which say nothing."""
    if not isinstance(body, dict):
        return body
    return {name: said(value) for name, value in body.items() if said(value) != {}}


def but(body: dict[str, Any], *path: str, value: object) -> dict[str, Any]:
    """``body`` with ``value`` at ``path``."""
    head, *rest = path
    return {**body, head: but(body.get(head) or {}, *rest, value=value) if rest else value}


@settings(max_examples=40, deadline=None)
@given(document=ENDPOINTS)
def test_endpoint(document: dict[str, Any]) -> None:
    path, before = endpoint_id(WORKSPACE, "ep-1"), wire.endpoint_to_wire(document, resource_changes.LOCATION)
    wanted = edits.parse_edits(["tags.new=1"])
    after = updated(
        path, before, lambda session: resource_changes.update_endpoint(session, None, "ep-1", {}, wanted, False)
    )
    assert after == said(but(before, "tags", "new", value="1"))


@settings(max_examples=40, deadline=None)
@given(document=DEPLOYMENTS)
def test_deployment(document: dict[str, Any]) -> None:
    path = deployment_id(WORKSPACE, "ep-1", "blue")
    before = wire.deployment_to_wire(
        document, resource_changes.LOCATION, lambda kind, text: text.removeprefix("azureml:")
    )
    wanted = edits.parse_edits(["instance_count=7"])
    after = updated(
        path, before, lambda session: resource_changes.update_deployment(session, "ep-1", "blue", wanted, False)
    )
    assert after == said(but(before, "sku", value={**before.get("sku", {"name": "Default"}), "capacity": 7}))


@settings(max_examples=40, deadline=None)
@given(document=MODELS, archived=st.booleans(), anonymous=st.booleans())
def test_model(document: dict[str, Any], archived: bool, anonymous: bool) -> None:
    path = model_id(WORKSPACE, "m", "1")
    uri = "azureml://datastores/workspaceblobstore/paths/LocalUpload/0/m"
    before = wire.model_to_wire(document, uri, archived=archived, anonymous=anonymous)
    wanted = edits.parse_edits(["description=new"])
    after = updated(path, before, lambda session: model_changes.update(session.client, "m", "1", {}, wanted))
    assert after == said(but(before, "properties", "description", value="new"))


def test_kubernetes_resources_stay_too() -> None:
    compute = compute_id(WORKSPACE, "k8s")
    before = wire.endpoint_to_wire({"name": "ep-1", "auth_mode": "key", "compute": compute}, resource_changes.LOCATION)
    path, wanted = endpoint_id(WORKSPACE, "ep-1"), edits.parse_edits(["description=d"])
    after = updated(
        path, before, lambda session: resource_changes.update_endpoint(session, None, "ep-1", {}, wanted, False)
    )
    assert after == said(but(before, "properties", "description", value="d"))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Edit("set", ("provisioning_state=Failed",)), "provisioning_state is read-only"),
        (Edit("set", ("scoring_uri=x",)), "scoring_uri is read-only"),
        (Edit("remove", ("id",)), "id is read-only"),
        (Edit("set", ("name=other",)), "name cannot change after a resource is created"),
        (Edit("remove", ("name",)), "name cannot change after a resource is created"),
    ],
)
def test_what_no_update_can_change_is_refused(wanted: Edit, message: str) -> None:
    with pytest.raises(Error, match=message):
        edits.refuse_immutable_fields([wanted], "managed_online_endpoint", {"name": "ep-1"})
    edits.refuse_immutable_fields(
        [Edit("set", ("name=ep-1", "tags.name=x"))], "managed_online_endpoint", {"name": "ep-1"}
    )
