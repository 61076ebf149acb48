"""Documents that users write: their JSON Schemas, their validation and their canonical form.

Decides the public functions: ``load``, ``validate``, ``normalize`` and the kinds. Modules with
expensive imports are imported on first use. The schema files are in the folder above. Must not know
files of users, or the control plane.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amphitrite.schemas.documents.kinds import KINDS, deployment_kind, endpoint_kind, instance_types_kind
from amphitrite.schemas.errors import Violation

__all__ = [
    "KINDS",
    "deployment_kind",
    "endpoint_kind",
    "instance_types_kind",
    "load",
    "normalize",
    "validate",
]


def load(kind: str) -> dict[str, Any]:
    """The self-contained JSON Schema (draft 2020-12) of ``kind``. It is shared; do not change it.

    Raises ValueError for a kind that is not in KINDS.
    """
    from amphitrite.schemas.documents.schema_files import schema

    return schema(kind)


def validate(kind: str, document: object, texts: Mapping[tuple[str | int, ...], str] | None = None) -> list[Violation]:
    """All violations of ``document``, sorted by path; empty if it is valid.

    ``document`` may be any object. ``texts``: path -> the source text of a scalar, if known; text
    fields use it (a version ``1.0``). Spellings that Azure ML accepts are accepted: see
    ``normalize``.
    """
    from amphitrite.schemas.documents.violations import violations

    return violations(kind, document, texts or {})


def normalize(
    kind: str, document: Mapping[str, Any], texts: Mapping[tuple[str | int, ...], str] | None = None
) -> dict[str, Any]:
    """The canonical form of a valid document.

    Enumerations become snake_case (``AMLToken`` -> ``aml_token``), numbers written as text become
    numbers, versions, tags and environment variables become text, ``nvidia.com/gpu`` becomes
    ``gpu``; ``$schema`` and read-only fields are dropped. Defaults are not filled in.
    """
    from amphitrite.schemas.documents.normalization import canonical

    return canonical(kind, document, texts or {})
