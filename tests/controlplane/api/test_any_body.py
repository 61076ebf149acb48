"""Whatever is sent, the answer is a success or a refusal that says why; never a fault of ours."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

WS = "/subscriptions/local/resourceGroups/local/providers/Microsoft.MachineLearningServices/workspaces/local"
EP = f"{WS}/onlineEndpoints/ep1"
ROUTES = [
    ("PUT", EP),
    ("PUT", f"{EP}/deployments/blue"),
    ("PUT", f"{WS}/models/m/versions/1"),
    ("PUT", f"{WS}/models/m"),
    ("POST", f"{EP}/regenerateKeys"),
    ("POST", f"{EP}/deployments/blue/getLogs"),
    ("PUT", "/dataplane/v1/agents/a"),
]
#: Words that lead deeper than chance would.
NAMES = [
    *("properties", "sku", "tags", "identity", "type", "authMode", "traffic", "mirrorTraffic", "compute", "model"),
    *("instanceType", "requestSettings", "requestTimeout", "readinessProbe", "initialDelay", "scaleSettings"),
    *("environmentVariables", "dataCollector", "collections", "codeConfiguration", "modelUri", "modelType", "flavors"),
    *("isArchived", "keyType", "tail", "containerType", "acknowledged_version", "envoy", "capacity", "description"),
]
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.sampled_from(["Key", "PT5S", "blue"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(NAMES), st.text(max_size=4)), inner, max_size=5),
    ),
    max_leaves=20,
)
BODIES = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=5)


@given(route=st.sampled_from(ROUTES), body=BODIES, nested=st.booleans())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_body(unchanged: Any, route: tuple[str, str], body: dict[str, Any], nested: bool) -> None:
    answer = unchanged.client.request(*route, content=json.dumps({"properties": body} if nested else body))
    assert answer.status_code < 500, answer.text


@pytest.mark.parametrize("depth", [50, 500, 900, 3000])
@pytest.mark.parametrize("route", ROUTES)
def test_deep_bodies(unchanged: Any, route: tuple[str, str], depth: int) -> None:
    deep = '{"properties":' * depth + "{}" + "}" * depth
    for body in (deep, '{"properties":{"flavors":' + deep + "}}", '{"properties":{"tags":' + deep + "}}"):
        assert unchanged.client.request(*route, content=body.encode()).status_code < 500
