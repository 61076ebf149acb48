"""Registers versions of models from their documents.

Decides when files become a new version, the name of an unnamed model, and the version of a label.
Must not know deployments.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from amphitrite.cli.assets import model_validation, uploads
from amphitrite.cli.documents.document_input import is_remote
from amphitrite.cli.session import near_names
from amphitrite.schemas import wire
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import environment_id, model_id, parse_asset

if TYPE_CHECKING:
    from amphitrite.cli.session.rest_client import Client
    from amphitrite.cli.terminal.progress import Progress

_IDS = {"models": model_id, "environments": environment_id}
_WITHOUT = {
    "codes": "scoring scripts are not supported; Triton serves the model's files directly",
    "data": "data assets are not supported",
}
#: Type of a model -> what to do for a deployment of it.
_SERVING = {
    "custom_model": "a deployment of this custom_model needs an environment with a container image of your own",
    "mlflow_model": "no deployment can have this mlflow_model: export it (to ONNX, for example) and register that",
}


def register(client: Client, document: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Upload the files at ``path`` and register them as a version (default: the next one).

    Returns the version's resource. Raises Error LocalFileError, and the errors of the server.
    """
    name, version = document["name"], document.get("version") or next_version(client, document["name"])
    uri = _upload(client, document, progress, name, version)
    return _put(client, name, version, wire.model_to_wire(document, uri))


def register_inline(client: Client, document: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Register a deployment's inline ``model`` and return its version's resource.

    With a name and a version it becomes that version. With only a name it is the newest version if
    that has the same files, else the next one. Without a name it is an anonymous model, named by
    the hash of its content, as with Azure ML's clients.
    """
    name, version = document.get("name"), document.get("version")
    if name is not None and version is not None:
        return register(client, document, progress)
    if name is None:
        uri = _upload(client, document, progress, "anonymous", "1")
        body = wire.model_to_wire(document, uri, anonymous=True)
        return _put(client, content_name(uri), "1", body)
    uri = _upload(client, document, progress, name, "")
    newest = find_latest(client, name)
    if newest is not None and newest["properties"]["modelUri"] == uri:
        return newest
    version = next_version(client, name)
    return _put(client, name, version, wire.model_to_wire(document, uri))


def notes(resource: Mapping[str, Any]) -> list[str]:
    """What the control plane tells of a version that it has just registered."""
    return [f"note: {note}" for note in resource["properties"].get("notes", ())]


def serving_notes(resource: Mapping[str, Any]) -> list[str]:
    """What a deployment of a registered version needs, if Triton alone cannot serve its type.

    Such a version is the latest one too, so a deployment of ``@latest`` would be refused.
    """
    kind = resource["properties"].get("modelType")
    if kind not in _SERVING:
        return []
    return [f"note: this server serves triton_model; {_SERVING[kind]}"]


def content_name(uri: str) -> str:
    """The name of a model without a name: the hash in its URI.

    Raises Error BadArgument if it has none.
    """
    digest = uri.partition("/LocalUpload/")[2].partition("/")[0]
    if not digest:
        message = f"model.path: a model at `{uri}`, which is not on this machine, needs a name and a version"
        raise Error("BadArgument", message, target="model")
    return digest


def next_version(client: Client, name: str) -> str:
    """The version after the highest one of ``name``; ``1`` for a new name."""
    container = client.find(model_id(client.workspace, name))
    return str(container["properties"]["nextVersion"]) if container is not None else "1"


def find_latest(client: Client, name: str, kind: Literal["models", "environments"] = "models") -> dict[str, Any] | None:
    """The version of ``name`` that was created last; None if there is none."""
    try:
        newest = client.get(
            f"{_IDS[kind](client.workspace, name)}/versions", **{"$orderBy": "createdtime desc", "$top": "1"}
        )["value"]
    except Error as error:
        if error.code == "ResourceNotFound":
            return None
        raise
    return newest[0] if newest else None


def resolve_version(
    client: Client,
    name: str,
    version: str | None,
    label: str | None,
    kind: Literal["models", "environments"] = "models",
) -> str:
    """The version for ``version`` or ``label``.

    Raises Error UsageError, BadArgument, ResourceNotFound.
    """
    if version is not None and label is not None:
        raise Error("UsageError", "Cannot specify both version and label.")
    if version is not None:
        return version
    if label is None:
        hint = "add --version (-v), or --label latest (-l)"
        raise Error("UsageError", "Must provide either version or label", hint=hint)
    if label != "latest":
        raise Error("BadArgument", f"unknown label `{label}`", hint="use the label `latest`")
    newest = find_latest(client, name, kind)
    if newest is None:
        one = kind.removesuffix("s")
        hint = f"run `ml {one} list` to see all names"
        raise Error("ResourceNotFound", f"no {one} '{name}'", target=name, hint=hint)
    return str(newest["name"])


def resolve_reference(client: Client, kind: Literal["models", "environments", "codes", "data"], reference: str) -> str:
    """The ARM id of a reference in a document.

    Raises Error BadArgument, ResourceNotFound, Unsupported.
    """
    if kind in ("codes", "data") and not reference.startswith(("/", "azureml:/")):
        raise Error("Unsupported", f"`{reference}`: {_WITHOUT[kind]}", target=reference, hint="remove the field")
    if reference.startswith("azureml://"):
        return reference  # In a registry: the server refuses it.
    parsed = parse_asset(reference)
    if parsed is None or reference.startswith(("/", "azureml:/")):
        return reference.removeprefix("azureml:")
    name, version, label = parsed
    if version is None and label is None:
        raise Error(
            "BadArgument",
            f"Failed to extract version when parsing asset {name} of type {kind} as arm id. Version must be provided.",
            target=reference,
            hint=f"write azureml:{name}:<version> or azureml:{name}@latest",
        )
    assert kind in ("models", "environments")
    with near_names.suggested(client, *near_names.version_places(kind, client.workspace, name, version)):
        return _IDS[kind](client.workspace, name, resolve_version(client, name, version, label, kind))


def set_archived(
    client: Client,
    name: str,
    version: str | None,
    label: str | None,
    *,
    archived: bool,
    kind: Literal["models", "environments"] = "models",
) -> str:
    """Archive or restore a version; all versions if neither version nor label is set.

    Returns what was done, such as ``model/pets:1 archived``. Raises Error ResourceNotFound.
    """
    number = resolve_version(client, name, version, label, kind) if version is not None or label is not None else None
    path = _IDS[kind](client.workspace, name, number)
    properties = {**client.get(path)["properties"], "isArchived": archived}
    client.send("PUT", path, json={"properties": properties})
    subject = f"{kind.removesuffix('s')}/{name}" + (f":{number}" if number is not None else "")
    return f"{subject} {'archived' if archived else 'restored'}"


def _upload(client: Client, document: Mapping[str, Any], progress: Progress, name: str, version: str) -> str:
    path = str(document["path"])
    if is_remote(path):
        return path
    model_validation.check(document)
    return uploads.upload(client, Path(path), progress, name=name, version=version)


def _put(client: Client, name: str, version: str, body: dict[str, Any]) -> dict[str, Any]:
    resource: dict[str, Any] = client.send("PUT", model_id(client.workspace, name, version), json=body).json()
    return resource
