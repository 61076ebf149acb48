"""Our own OpenAPI document: it is about all routes and nothing else, and the committed copy is what
the routes say."""

from __future__ import annotations

import json
from pathlib import Path
from runpy import run_path
from typing import Any

from jsonschema import Draft202012Validator

from amphitrite.controlplane.api.openapi.operation_table import OPERATIONS
from amphitrite.controlplane.api.openapi.payload_schemas import ref, shape, type_
from amphitrite.schemas.errors import CODES

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_it_is_served_to_whoever_has_a_token(unchanged: Any) -> None:
    assert unchanged.client.get("/openapi.json", headers={"Authorization": ""}).status_code == 401
    served = unchanged.client.get("/openapi.json").json()
    assert served["openapi"] == "3.1.0"
    # A route without a line in the table is a KeyError there; here a line without a route is found.
    described = {f"{method.upper()} {path}" for path, methods in served["paths"].items() for method in methods}
    assert described == set(OPERATIONS)


def test_every_code_is_one_of_ours_and_every_reference_leads_somewhere(unchanged: Any) -> None:
    document = unchanged.client.get("/openapi.json").json()
    assert {code for operation in OPERATIONS.values() for code in operation.errors} <= set(CODES)
    found = json.dumps(document).split('"#/components/schemas/')[1:]
    # And whatever is there is led to.
    assert {text.split('"')[0] for text in found} == set(document["components"]["schemas"])
    for name, schema in document["components"]["schemas"].items():
        Draft202012Validator.check_schema({"title": name, **schema})


def test_the_notation_of_payloads() -> None:
    made = shape("name? count:count|null verb=get|put kind=x parts:[Part] by_name:{text}")
    text, names = {"type": "string"}, ["count", "verb", "kind", "parts", "by_name"]
    properties = {
        "name": text,
        "count": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
        "verb": {"enum": ["get", "put"]},
        "kind": {"const": "x"},
        "parts": {"type": "array", "items": ref("Part")},
        "by_name": {"type": "object", "additionalProperties": text},
    }
    assert made == {"type": "object", "properties": properties, "required": names, "additionalProperties": False}
    assert shape("name?", closed=False) == {"type": "object", "properties": {"name": text}}
    assert type_("[text]|null") == {"anyOf": [{"type": "array", "items": text}, {"type": "null"}]}


def test_the_committed_copy_is_not_stale() -> None:
    """`make golden`, or python docs/openapi_reference.py, writes it anew."""
    made = run_path(str(DOCS / "openapi_reference.py"))["text"]()
    assert (DOCS / "reference" / "openapi.json").read_text(encoding="utf-8") == made
