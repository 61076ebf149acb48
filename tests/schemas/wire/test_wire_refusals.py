"""Nothing on the wire is accepted and ignored, and nothing but Error comes out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amphitrite.schemas import documents, wire
from amphitrite.schemas.errors import Error

ROWS: list[tuple[str, Any, list[str]]] = [
    ("deployment", {"foo": 1}, ["foo: unknown property"]),
    ("deployment", {"properties": {"modell": "x"}}, ["properties.modell: unknown property"]),
    ("deployment", [], ["must be a JSON object"]),
    ("deployment", {"properties": 5, "sku": "x"}, ["sku: must be a JSON object", "properties: must be a JSON object"]),
    (
        "deployment",
        {"properties": {"requestSettings": {"requestTimeout": 5, "maxQueueWait": "PT0.0005S"}}},
        [
            "properties.requestSettings.requestTimeout: must be an ISO 8601 duration such as PT5S; found '5'",
            "properties.requestSettings.maxQueueWait: must be a whole number of milliseconds; found 'PT0.0005S'",
        ],
    ),
    (
        "deployment",
        {"properties": {"livenessProbe": {"period": "PT0.5S", "path": "/"}}},
        [
            "properties.livenessProbe.period: must be a whole number of seconds; found 'PT0.5S'",
            "properties.livenessProbe.path: unknown property",
        ],
    ),
    ("deployment", {"properties": {"dataCollector": {}, "scaleSettings": [1]}},
     ["properties.scaleSettings: must be a JSON object"]),
    ("endpoint", {"properties": {"keys": {"primaryKey": "x"}}}, ["properties.keys: unknown property"]),
    ("endpoint", {"identity": {"type": "SystemAssigned", "x": 1}}, ["identity: unknown property x"]),
    ("model", {"properties": {"modelPath": "x"}}, ["properties.modelPath: unknown property"]),
]  # fmt: skip
READERS = {
    "endpoint": lambda body: wire.endpoint_from_wire("my-ep", body),
    "deployment": lambda body: wire.deployment_from_wire("my-ep", "blue", body),
    "model": lambda body: wire.model_from_wire("m", "1", body),
    "environment": lambda body: wire.environment_from_wire("e", "1", body),
    "container": lambda body: wire.container_from_wire("m", body),
}
KINDS = {"endpoint": "managed_online_endpoint", "deployment": "managed_online_deployment"}


@pytest.mark.parametrize(("reader", "body", "want"), ROWS)
def test_refused(reader: str, body: object, want: list[str]) -> None:
    with pytest.raises(Error) as caught:
        READERS[reader](body)
    assert caught.value.code == "BadArgument"
    assert [str(violation) for violation in caught.value.violations] == want


WIRE_NAMES = st.sampled_from(
    [
        *("properties", "sku", "tags", "identity", "authMode", "traffic", "model", "requestSettings", "requestTimeout"),
        *("scaleSettings", "scaleType", "type", "dataCollector", "collections", "inferenceConfig", "scoringRoute"),
        *("capacity", "userAssignedIdentities", "flavors", "build", "systemData", "readinessProbe", "period"),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("PT5S"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WIRE_NAMES | st.text(max_size=4), inner, max_size=5),
    max_leaves=12,
)


@given(reader=st.sampled_from(sorted(READERS)), body=JSON)
def test_any_json_is_read_or_refused(reader: str, body: object) -> None:
    try:
        document = READERS[reader](body)
    except Error as error:
        assert error.violations
    else:
        if reader != "container":
            documents.validate(KINDS.get(reader, reader), document)
