"""From options and files to a compute's document, and the request that stores it.

Decides which document an ``--file`` of ``ml compute update`` is, and that a kubeconfig travels whole: files that it
names are put into it, since the control plane does not have them. Must not know options' names or Kubernetes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from amphitrite.cli.documents import document_files, document_input, kubeconfig_files
from amphitrite.cli.documents.document_files import Document
from amphitrite.cli.documents.document_input import Draft
from amphitrite.schemas import wire
from amphitrite.schemas.documents import instance_types_kind
from amphitrite.schemas.errors import Error, Violation
from amphitrite.schemas.names import compute_id, key

if TYPE_CHECKING:
    from amphitrite.cli.session.rest_client import Client

#: Resources carry the workspace's location; ours has one.
_LOCATION = "local"
#: Fields of a compute's document that no document of instance types has.
_OF_A_COMPUTE = ("namespace", "type", "kubeconfig", "in_cluster", "default_instance_type")


def compute(file: str | None, options: Mapping[str, Any], sets: Sequence[str]) -> Draft:
    """A compute to attach. Raises Error with everything that is wrong."""
    return _judged(document_files.override(document_input.source(file, options), sets))


def changed(name: str, current: Mapping[str, Any], file: str | None, sets: Sequence[str]) -> Draft:
    """The compute ``current`` as ``file`` and ``--set`` want it. Raises Error with everything that is wrong."""
    found = document_files.load_documents(file) if file is not None else []
    if not found:
        return _judged(document_files.override(Document(f"compute {name}", dict(current), FilePath()), sets))
    first = found[0]
    if len(found) == 1 and isinstance(first.value, Mapping) and any(field in first.value for field in _OF_A_COMPUTE):
        return _judged(document_files.override(document_input.with_options(first, {"name": name}), sets))
    if sets:
        raise Error("UsageError", "--set changes a compute, and the file has instance types", hint="one at a time")
    return _with_types(current, found)


def put(client: Client, document: Mapping[str, Any], *, create: bool) -> dict[str, Any]:
    """Store it; the resource. Raises Error Conflict when it is to be created and is there."""
    address = compute_id(client.workspace, document["name"])
    headers = {"If-None-Match": "*"} if create else None
    try:
        answer = client.send("PUT", address, json=wire.compute_to_wire(document, _LOCATION), headers=headers)
    except Error as error:
        if error.code != "PreconditionFailed":
            raise
        hint = "to change it: ml compute update"
        raise Error("Conflict", f"{document['name']} exists already", target=address, hint=hint) from error
    body: dict[str, Any] = answer.json()
    return body


def _with_types(current: Mapping[str, Any], found: Sequence[Document]) -> Draft:
    """Ours are all types that the compute has then; Azure's are added, as ``kubectl apply`` adds them."""
    types = {key(one["name"]): one for one in current.get("instance_types") or ()}
    for document in found:
        kind = instance_types_kind(document.value)
        checked = document_files.check(document, kind)
        if kind == "instance_types":
            if len(found) == 1:
                return Draft({**current, "instance_types": checked["instance_types"]}, document)
            types = {}
        types.update({key(one["name"]): one for one in wire.listed_types(kind, checked)})
    # Where an entry was written is not where it is in the compute's document now.
    nowhere = Document(found[0].name, {}, FilePath())
    return Draft({**current, "instance_types": list(types.values())}, nowhere)


def _judged(document: Document) -> Draft:
    checked = document_files.check(document, "kubernetes_compute")
    if "kubeconfig" in checked:
        checked = {**checked, "kubeconfig": _kubeconfig(checked["kubeconfig"], document)}
    return Draft(checked, document)


def _kubeconfig(path: str, document: Document) -> str:
    """The text of the file, complete. Relative paths start from the document, or where ``ml`` runs."""
    at = ("kubeconfig",)
    file = FilePath(path).expanduser()
    file = file if at in document.origins else document.directory / file
    try:
        return kubeconfig_files.complete(file)
    except Error as error:
        violation = Violation(at, error.message, error.hint, document.location(at))
        raise Error(error.code, error.message, target=str(file), hint=error.hint, violations=[violation]) from error
