"""Checked documents from wire bodies.

Decides the order: read the wire form, validate by the JSON Schema, normalize. Must not know routes
or the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amphitrite.controlplane.services import document_defaults
from amphitrite.schemas import documents, wire
from amphitrite.schemas.errors import Error, Violation

Document = dict[str, Any]


def endpoint(name: str, body: Document) -> Document:
    """The document of an endpoint.

    Raises Error: BadArgument (the body has the wrong form), InvalidDocument (with all violations).
    """
    document = wire.endpoint_from_wire(name, body)
    checked = _validated(documents.endpoint_kind(document), document, name)
    return document_defaults.strip(checked, document_defaults.of_endpoint(document))


def deployment(endpoint_name: str, name: str, body: Document) -> Document:
    """The document of a deployment. Raises as :func:`endpoint`."""
    document = wire.deployment_from_wire(endpoint_name, name, body)
    checked = _validated(documents.deployment_kind(document), document, f"{endpoint_name}/{name}")
    return document_defaults.strip(checked, document_defaults.of_deployment(document))


def compute(name: str, body: Document) -> Document:
    """The document of a compute. ``kubeconfig`` is the text of the file. Raises as
    :func:`endpoint`."""
    return _validated("kubernetes_compute", wire.compute_from_wire(name, body), name)


def model(name: str, version: str, body: Document) -> Document:
    """The document of a model version. Raises as :func:`endpoint`."""
    return _validated("model", wire.model_from_wire(name, version, body), f"{name}:{version}")


def environment(name: str, version: str, body: Document) -> Document:
    """The document of an environment version. ``conda_file`` is its text. Raises as
    :func:`endpoint`."""
    return _validated("environment", wire.environment_from_wire(name, version, body), f"{name}:{version}")


def code(name: str, version: str, body: Document) -> Document:
    """The document of a code version. Raises as :func:`endpoint`."""
    # Users do not write such documents, so there is no schema for them. The fields are those of a
    # model.
    return _validated("model", wire.code_from_wire(name, version, body), f"{name}:{version}")


def container(name: str, body: Document) -> Document:
    """The shared ``tags`` and ``properties`` of all versions of a model or an environment. Raises
    as :func:`endpoint`."""
    document = wire.container_from_wire(name, body)
    if document.get("description"):
        raise Error("Unsupported", "only a version can have a description", target=name, hint="remove description")
    # Validated like a version. It lacks only a version's path.
    checked = _validated("model", {**document, "path": "."}, name)
    return {"tags": checked.get("tags", {}), "properties": checked.get("properties", {})}


def refuse(violations: Sequence[Violation], target: str) -> None:
    """Raises one Error("InvalidDocument") for all of ``violations``, if there are any."""
    if violations:
        first = violations[0]
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        raise Error("InvalidDocument", f"{first}{more}", target=target, hint=first.hint, violations=violations)


def _validated(kind: str, document: Document, target: str) -> Document:
    refuse(documents.validate(kind, document), target)
    return documents.normalize(kind, document)
