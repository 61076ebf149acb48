"""The schemas themselves: valid, closed, and described, since the reference is made of them."""

from __future__ import annotations

import runpy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from amphitrite.schemas import documents
from amphitrite.schemas.documents.schema_files import resolve

DOCS = Path(__file__).resolve().parents[3] / "docs"


def fields(node: Mapping[str, Any], root: Mapping[str, Any], at: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every property below a schema, with the place where it is written."""
    below = {**node.get("properties", {}), **node.get("$defs", {})}
    for name, entry in node.get("properties", {}).items():
        yield f"{at}.{name}", resolve(entry, root)
    for name in ("items", "additionalProperties"):
        if isinstance(node.get(name), dict):
            below[name] = node[name]
    below.update({str(index): alternative for index, alternative in enumerate(node.get("anyOf", ()))})
    for name, child in below.items():
        yield from fields(child, root, f"{at}.{name}")


@pytest.mark.parametrize("kind", documents.KINDS)
def test_is_a_json_schema(kind: str) -> None:
    Draft202012Validator.check_schema(documents.load(kind))


@pytest.mark.parametrize("kind", documents.KINDS)
def test_every_field_is_described_in_one_sentence(kind: str) -> None:
    schema = documents.load(kind)
    wrong = [
        place
        for place, field in fields(schema, schema, kind)
        if not field.get("description", "").endswith(".") or "|" in field["description"]
    ]
    assert wrong == []


@pytest.mark.parametrize("kind", documents.KINDS)
def test_every_default_is_valid(kind: str) -> None:
    schema = documents.load(kind)
    for place, field in fields(schema, schema, kind):
        if "default" in field:
            whole = {**field, "$defs": schema["$defs"]}
            assert list(Draft202012Validator(whole).iter_errors(field["default"])) == [], place


def test_an_unknown_kind_is_a_programming_error() -> None:
    with pytest.raises(ValueError, match="unknown kind 'pod'"):
        documents.load("pod")


@pytest.mark.parametrize("kind", documents.KINDS)
def test_the_reference_page_is_up_to_date(kind: str) -> None:
    page = runpy.run_path(str(DOCS / "generate.py"))["page"]
    written = (DOCS / "reference" / f"{kind}.md").read_text(encoding="utf-8")
    assert written == page(kind), "run: python docs/generate.py"
