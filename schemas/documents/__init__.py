"""Documents that users write: their JSON Schemas, their validation and their canonical form.

Decides the public functions: ``load``, ``validate``, ``normalize`` and the kinds. It imports nothing costly on its own:
the work is in modules that are imported when they are first used. The schema files lie in ``schemas``.
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
    """The JSON Schema (draft 2020-12) of ``kind``, self-contained; shared, so not to be changed.

    Raises ValueError for a kind that is not in KINDS.
    """
    from amphitrite.schemas.documents.schema_files import schema

    return schema(kind)


def validate(kind: str, document: object, texts: Mapping[tuple[str | int, ...], str] | None = None) -> list[Violation]:
    """Everything wrong with ``document``, in the order of its paths; empty when it is valid.

    Any object may be given. ``texts`` are the source texts of scalars by path, where known: fields that are text by
    meaning (a version ``1.0``) take them. Spellings that Azure ML accepts are accepted: see ``normalize``.
    """
    from amphitrite.schemas.documents.violations import violations

    return violations(kind, document, texts or {})


def normalize(
    kind: str, document: Mapping[str, Any], texts: Mapping[tuple[str | int, ...], str] | None = None
) -> dict[str, Any]:
    """The canonical form of a valid document.

    Enumerations become snake_case (``AMLToken`` -> ``aml_token``), numbers written as text become numbers, versions,
    tags and environment variables become text, ``nvidia.com/gpu`` becomes ``gpu``; ``$schema`` and read-only fields
    are dropped. Defaults are not filled in.
    """
    from amphitrite.schemas.documents.normalization import canonical

    return canonical(kind, document, texts or {})
