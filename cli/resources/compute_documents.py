"""The documents of computes, from options and files, and the request that stores one.

Decides which kind of document ``ml compute update --file`` has, and that a kubeconfig is sent with
the content of the files that it names, because the control plane does not have them. Must not know
Kubernetes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from amphitrite.cli.documents import document_files, document_input, document_kinds, kubeconfig_files
from amphitrite.cli.documents.document_files import Document
from amphitrite.cli.documents.document_input import Submission
from amphitrite.cli.resources import conditional_updates
from amphitrite.schemas import wire
from amphitrite.schemas.documents import instance_types_kind
from amphitrite.schemas.errors import Error, Violation
from amphitrite.schemas.names import compute_id, key

if TYPE_CHECKING:
    import httpx

    from amphitrite.cli.session.rest_client import Client

#: The location of the only workspace, which every resource carries.
_LOCATION = "local"
#: Fields that only the document of a compute has, not one of instance types.
_COMPUTE_FIELDS = ("namespace", "type", "kubeconfig", "in_cluster", "default_instance_type")


def read_compute(file: str | None, options: Mapping[str, Any], assignments: Sequence[str]) -> Submission:
    """A compute to attach. Raises one Error with all violations."""
    return _validate(document_files.with_assignments(document_input.read_source(file, options), assignments))


def read_update(name: str, current: Mapping[str, Any], file: str | None, assignments: Sequence[str]) -> Submission:
    """The compute ``current`` with the changes of ``file`` or ``--set``.

    Raises one Error with all violations.
    """
    documents = document_files.load_documents(file) if file is not None else []
    if not documents:
        return _validate(
            document_files.with_assignments(Document(f"compute {name}", dict(current), FilePath()), assignments)
        )
    first = documents[0]
    if (
        len(documents) == 1
        and isinstance(first.value, Mapping)
        and any(field in first.value for field in _COMPUTE_FIELDS)
    ):
        return _validate(
            document_files.with_assignments(document_input.with_options(first, {"name": name}), assignments)
        )
    if assignments:
        raise Error(
            "UsageError",
            "--set cannot be combined with a file of instance types",
            hint="run one command with --set and one with --file",
        )
    return _with_types(current, documents)


def update(client: Client, name: str, edit: Callable[[Any], Submission]) -> dict[str, Any]:
    """Read a compute, edit it and store it; again if it changed meanwhile (If-Match).

    ``edit``: from the resource to the document. Returns the new resource. Raises Error Conflict for
    a built-in compute.
    """

    def change(answer: httpx.Response, headers: Mapping[str, str]) -> dict[str, Any]:
        resource = answer.json()
        if not resource["properties"]["isAttachedCompute"]:
            message = f"compute {resource['name']} is built in; only the settings of the server change it"
            raise Error("Conflict", message, hint="set ML_INSTANCE_TYPES, or instanceTypes of the Helm chart")
        submission = edit(resource)
        with submission.with_locations():
            return _put(client, submission.document, headers)

    places = [(name, f"{client.workspace}/computes")]
    return conditional_updates.update(client, compute_id(client.workspace, name), places, change)


def create(client: Client, document: Mapping[str, Any]) -> dict[str, Any]:
    """Store a new compute and return its resource. Raises Error Conflict if it exists."""
    try:
        return _put(client, document, {"If-None-Match": "*"})
    except Error as error:
        if error.code != "PreconditionFailed":
            raise
        hint = "run `ml compute update` to change it"
        address = compute_id(client.workspace, document["name"])
        raise Error("Conflict", f"compute {document['name']} already exists", target=address, hint=hint) from error


def _put(client: Client, document: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
    address = compute_id(client.workspace, document["name"])
    answer = client.send("PUT", address, json=wire.compute_to_wire(document, _LOCATION), headers=headers)
    body: dict[str, Any] = answer.json()
    return body


def _with_types(current: Mapping[str, Any], documents: Sequence[Document]) -> Submission:
    """The compute ``current`` with the instance types in documents.

    Documents of our kind replace all types of the compute. Azure's custom resources are added to
    them, as with ``kubectl apply``.
    """
    types = {key(one["name"]): one for one in current.get("instance_types") or ()}
    for document in documents:
        document_kinds.require(document, "instance types")
        kind = instance_types_kind(document.value)
        checked = document_files.validate_and_normalize(document, kind)
        if kind == "instance_types":
            if len(documents) == 1:
                return Submission({**current, "instance_types": checked["instance_types"]}, document)
            types = {}
        types.update({key(one["name"]): one for one in wire.listed_types(kind, checked)})
    # The entries have other paths in the compute's document than in the file, so they have no
    # locations.
    source = Document(documents[0].name, {}, FilePath())
    return Submission({**current, "instance_types": list(types.values())}, source)


def _validate(document: Document) -> Submission:
    document_kinds.require(document, "compute")
    checked = document_files.validate_and_normalize(document, "kubernetes_compute")
    if "kubeconfig" in checked:
        checked = {**checked, "kubeconfig": _kubeconfig(checked["kubeconfig"], document)}
    return Submission(checked, document)


def _kubeconfig(path: str, document: Document) -> str:
    """The self-contained text of a kubeconfig.

    ``path`` is relative to its document, or to the working directory if an option set it.
    """
    at = ("kubeconfig",)
    file = FilePath(path).expanduser()
    file = file if at in document.origins else document.directory / file
    try:
        return kubeconfig_files.embed_files(file)
    except Error as error:
        violation = Violation(at, error.message, error.hint, document.location(at))
        raise Error(error.code, error.message, target=str(file), hint=error.hint, violations=[violation]) from error
