"""Updates of a registered version of a model.

Decides that its files never change: its other fields are read, edited and written back. Must not
know options.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amphitrite.cli.documents import document_files, document_input, edits
from amphitrite.cli.documents.document_files import Document
from amphitrite.cli.documents.edits import Edit
from amphitrite.schemas import wire
from amphitrite.schemas.names import model_id

if TYPE_CHECKING:
    from amphitrite.cli.session.rest_client import Client


def update(
    client: Client, name: str, version: str, options: dict[str, Any], field_edits: Sequence[Edit]
) -> dict[str, Any]:
    """Change a version with ``options`` (field -> value), then ``field_edits``.

    Returns its resource. Raises Error.
    """
    path = model_id(client.workspace, name, version)
    resource = client.get(path)
    current = wire.model_from_wire(name, version, resource)
    # These fields identify the version or its files.
    edits.refuse_immutable_fields(
        field_edits, "model", {field: current.get(field) for field in ("name", "version", "path", "type")}
    )
    source = document_input.with_options(Document(f"model {name}:{version}", current, Path()), options)
    document = document_files.validate_and_normalize(edits.apply(source, field_edits), "model")
    archived, anonymous = wire.model_flags(resource)
    body = wire.model_to_wire(document, current["path"], anonymous=anonymous, archived=archived)
    changed: dict[str, Any] = client.send("PUT", path, json=body).json()
    return changed
