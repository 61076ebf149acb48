"""Parameters in the OpenAPI document that say more than the routes' types do.

Decides the patterns of names and the headers that are read. Must not know which operation has which.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amphitrite.controlplane.api.azure.token_authority import TENANT
from amphitrite.controlplane.api.openapi_wire import value
from amphitrite.schemas import documents

_DEFINITIONS = {name: one for kind in documents.KINDS for name, one in documents.load(kind)["$defs"].items()}


def _named(definition: str) -> dict[str, Any]:
    return value({"$ref": f"#/$defs/{definition}"}, {"$defs": _DEFINITIONS}, sent=True)


#: What a new resource may be called. Whatever is only looked up may be any text: there is nothing of that name.
NAMES: Mapping[str, dict[str, Any]] = {
    "resource": _named("name"),
    "compute": _named("computeName"),
    "asset": _named("assetName"),
    "version": _named("version"),
    "tenant": {"type": "string", "enum": [TENANT]},
}
#: Of a blob that is looked for, and of one that is written: what XML cannot say is in no name.
BLOB_PATH = {"type": "string", "minLength": 1, "maxLength": 1024, "pattern": r"^[^\u0000]+$"}
BLOB_NAME = {**BLOB_PATH, "pattern": r"^[^\u0000-\u001f\u007f\ufffe\uffff]+$"}
#: Case and further spaces do not count.
ORDER = {"type": "string", "pattern": r"^\s*[cC][rR][eE][aA][tT][eE][dD][tT][iI][mM][eE]\s+([dD][eE]|[aA])[sS][cC]\s*$"}


def header(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "schema": dict(schema)}


IF_MATCH = header("If-Match", {"type": "string"})
IF_NONE_MATCH = header("If-None-Match", {"const": "*"})
