"""The kind of resource that a document describes.

Decides it by ``$schema``, or else by fields that only one kind has; and what somebody is told who
gives a document to the wrong command. Must not know the server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from amphitrite.cli.documents.document_files import Document
from amphitrite.schemas.errors import Error, Violation

Kind = Literal["model", "environment", "endpoint", "deployment", "compute", "instance types"]

_SCHEMA = re.compile(r"(?P<name>[A-Za-z]+)(\.schema)?\.json$")
_SCHEMAS: Mapping[str, Kind] = {
    "managedOnlineEndpoint": "endpoint",
    "kubernetesOnlineEndpoint": "endpoint",
    "managedOnlineDeployment": "deployment",
    "kubernetesOnlineDeployment": "deployment",
    "model": "model",
    "environment": "environment",
    "kubernetesCompute": "compute",
}
#: The kinds of documents without a known ``$schema``: the first row with a field of the document
#: decides.
_FIELDS: tuple[tuple[Kind, frozenset[str]], ...] = (
    ("endpoint", frozenset({"deployments"})),
    ("deployment", frozenset({"endpoint_name", "instance_type", "instance_count", "code_configuration", "model"})),
    ("compute", frozenset({"kubeconfig", "in_cluster", "namespace", "default_instance_type"})),
    (
        "endpoint",
        frozenset(
            {"auth_mode", "traffic", "mirror_traffic", "rollout", "public_network_access", "compute", "identity"}
        ),
    ),
    ("environment", frozenset({"image", "conda_file", "build", "inference_config"})),
    ("instance types", frozenset({"instance_types", "apiVersion"})),
    ("model", frozenset({"path", "type", "flavors", "stage"})),
)
_COMMANDS: Mapping[Kind, str] = {
    "endpoint": "ml online-endpoint create -f {file}",
    "deployment": "ml online-deployment create -f {file}",
    "model": "ml model create -f {file}",
    "environment": "ml environment create -f {file}",
    "compute": "ml compute attach -f {file}",
    "instance types": "ml compute update -n COMPUTE -f {file}",
}


def find(document: Document) -> Kind | None:
    """The kind of ``document``; None if it cannot be told."""
    value = document.value if isinstance(document.value, Mapping) else {}
    match = _SCHEMA.search(str(value.get("$schema", "")))
    if match is not None and match["name"] in _SCHEMAS:
        return _SCHEMAS[match["name"]]
    names = _fields(document)
    return next((kind for kind, fields in _FIELDS if fields & names), None)


def require(document: Document, wanted: Kind) -> None:
    """Raises Error InvalidDocument if ``document`` is of another kind.

    If it has a field of ``wanted``, it is one with other mistakes, such as a wrong ``$schema``.
    """
    kind, names = find(document), _fields(document)
    if kind is None or kind == wanted:
        return
    if not any(fields & names for one, fields in _FIELDS if one == wanted):
        raise wrong_kind(document, kind)


def wrong_kind(document: Document, kind: Kind) -> Error:
    """The Error for a document of ``kind``, with the command that takes it."""
    article = "these are" if kind == "instance types" else f"this is {'an' if kind[0] in 'aeiou' else 'a'}"
    file = "-" if document.name == "<stdin>" else document.name
    hint = f"run `{_COMMANDS[kind].format(file=file)}`"
    violation = Violation((), f"{article} {kind}", hint, location=document.location(()))
    return Error("InvalidDocument", str(violation), hint=hint, violations=[violation])


def _fields(document: Document) -> set[str]:
    """The fields at the top, without those that options set."""
    if not isinstance(document.value, Mapping):
        return set()
    return {str(field) for field in document.value if (field,) not in document.origins}
