"""From wire bodies to judged documents.

Decides the order: read the wire form, judge by the JSON Schema, bring to the canonical form. Must not know routes or
the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amphitrite.controlplane.services import document_defaults
from amphitrite.schemas import documents, wire
from amphitrite.schemas.errors import Error, Violation

Document = dict[str, Any]


def endpoint(name: str, body: Document) -> Document:
    """The document of an endpoint. Raises Error BadArgument, InvalidDocument with everything that is wrong."""
    document = wire.endpoint_from_wire(name, body)
    judged = _judged(documents.endpoint_kind(document), document, name)
    return document_defaults.strip(judged, document_defaults.of_endpoint(document))


def deployment(endpoint_name: str, name: str, body: Document) -> Document:
    """The document of a deployment; raises as :func:`endpoint`."""
    document = wire.deployment_from_wire(endpoint_name, name, body)
    judged = _judged(documents.deployment_kind(document), document, f"{endpoint_name}/{name}")
    return document_defaults.strip(judged, document_defaults.of_deployment(document))


def compute(name: str, body: Document) -> Document:
    """The document of a compute, its ``kubeconfig`` the text of the file; raises as :func:`endpoint`."""
    return _judged("kubernetes_compute", wire.compute_from_wire(name, body), name)


def model(name: str, version: str, body: Document) -> Document:
    """The document of a model version; raises as :func:`endpoint`."""
    return _judged("model", wire.model_from_wire(name, version, body), f"{name}:{version}")


def environment(name: str, version: str, body: Document) -> Document:
    """The document of an environment version, its ``conda_file`` text; raises as :func:`endpoint`."""
    return _judged("environment", wire.environment_from_wire(name, version, body), f"{name}:{version}")


def code(name: str, version: str, body: Document) -> Document:
    """The document of a code version; raises as :func:`endpoint`."""
    # Nobody writes one by hand, so there is no schema of its own: it has the fields of a model that are judged here.
    return _judged("model", wire.code_from_wire(name, version, body), f"{name}:{version}")


def container(name: str, body: Document) -> Document:
    """``tags`` and ``properties`` of all versions of a model or an environment together; raises as :func:`endpoint`."""
    document = wire.container_from_wire(name, body)
    if document.get("description"):
        raise Error("Unsupported", "a description belongs to a version", target=name, hint="remove it")
    # Judged as a version is, whose path is the only thing it lacks.
    judged = _judged("model", {**document, "path": "."}, name)
    return {"tags": judged.get("tags", {}), "properties": judged.get("properties", {})}


def refuse(violations: Sequence[Violation], target: str) -> None:
    """Raise one Error("InvalidDocument") for all of ``violations``; none: nothing happens."""
    if violations:
        first = violations[0]
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        raise Error("InvalidDocument", f"{first}{more}", target=target, hint=first.hint, violations=violations)


def _judged(kind: str, document: Document, target: str) -> Document:
    refuse(documents.validate(kind, document), target)
    return documents.normalize(kind, document)
