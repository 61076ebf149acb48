"""Writes docs/reference/*.md from the JSON Schemas, a page for each kind of document, and what
``cli_reference.py``, ``kubernetes_tables.py``, ``openapi_reference.py`` and
``troubleshooting_page.py`` write.

Decides how a schema reads as a table. Must not add facts: a sentence that is missing here is
missing in the schema. Run it after each change of a schema or a command:
``python docs/generate.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from runpy import run_path
from typing import Any

from amphitrite.schemas import documents
from amphitrite.schemas.documents.schema_files import resolve

REFERENCE = Path(__file__).parent / "reference"
_TYPES = {"string": "text", "object": "mapping", "array": "list", "boolean": "true or false"}


@dataclass(frozen=True, slots=True)
class Row:
    """One field. ``path`` is dotted; ``[]`` stands for each entry of a list, ``<name>`` for each
    key of a mapping."""

    path: str
    type: str
    default: str
    description: str
    read_only: bool


def page(kind: str) -> str:
    """The reference page of one kind of document, in Markdown."""
    schema = documents.load(kind)
    rows = list(_rows(resolve(schema, schema), schema, ""))
    written = [row for row in rows if not row.read_only]
    shown = [row for row in rows if row.read_only]
    lines = [f"# {schema['title']}", "", schema["description"], ""]
    lines += [f"JSON Schema: `schemas/{kind}.schema.json`. This page is generated from it by `docs/generate.py`.", ""]
    lines += ["| path | type | default | description |", "|---|---|---|---|"]
    lines += [f"| `{row.path}` | {row.type} | {row.default} | {row.description} |" for row in written]
    if shown:
        lines += [
            "",
            "`show` prints these fields too. A document may contain them, so that the output of `show` is a valid",
            "document. They have no effect there:",
        ]
        lines += ["", "| path | type | description |", "|---|---|---|"]
        lines += [f"| `{row.path}` | {row.type} | {row.description} |" for row in shown]
    return "\n".join(lines) + "\n"


def _rows(node: Mapping[str, Any], root: Mapping[str, Any], prefix: str) -> Iterator[Row]:
    for name, entry in node.get("properties", {}).items():
        field = resolve(entry, root)
        path = f"{prefix}.{name}" if prefix else name
        default = f"`{dumps(field['default'])}`" if "default" in field else ""
        if name in node.get("required", ()):
            default = "required"
        read_only = bool(field.get("readOnly"))
        yield Row(path, _type(field, root), default, field["description"], read_only)
        if not read_only:
            yield from _below(field, root, path)


def _below(field: Mapping[str, Any], root: Mapping[str, Any], path: str) -> Iterator[Row]:
    """The fields inside a field, whichever way it nests them."""
    yield from _rows(field, root, path)
    for alternative in field.get("anyOf", ()):
        yield from _rows(resolve(alternative, root), root, path)
    if isinstance(field.get("items"), dict):
        yield from _rows(resolve(field["items"], root), root, f"{path}[]")
    if isinstance(field.get("additionalProperties"), dict):
        yield from _rows(resolve(field["additionalProperties"], root), root, f"{path}.<name>")


def _type(field: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_type(resolve(alternative, root), root) for alternative in field["anyOf"])
    if "enum" in field:
        return ", ".join(f"`{word}`" for word in field["enum"])
    kind = str(field["type"])
    bounds = _bounds(field)
    if kind == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"mapping of {_type(resolve(field['additionalProperties'], root), root)}"
    if kind == "array" and "items" in field:
        return f"list of {_type(resolve(field['items'], root), root)}"
    return f"{_TYPES.get(kind, kind)}{bounds}"


def _bounds(field: Mapping[str, Any]) -> str:
    if "minimum" in field and "maximum" in field:
        return f" {field['minimum']} to {field['maximum']}"
    if field.get("minLength", 1) > 1 and "maxLength" in field:
        return f" of {field['minLength']} to {field['maxLength']} characters"
    return ""


def main() -> None:
    REFERENCE.mkdir(exist_ok=True)
    for kind in documents.KINDS:
        (REFERENCE / f"{kind}.md").write_text(page(kind), encoding="utf-8")
    for other in ("cli_reference.py", "kubernetes_tables.py", "openapi_reference.py", "troubleshooting_page.py"):
        run_path(str(Path(__file__).parent / other), run_name="__main__")


if __name__ == "__main__":
    main()
