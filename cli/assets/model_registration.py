"""From what a document says about a model to a registered version of it.

Decides when files become a new version, what an unnamed model is called, and which version a label means. Must not know
deployments.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from amphitrite.cli.assets import model_validation, uploads
from amphitrite.cli.documents.document_input import is_remote
from amphitrite.schemas import wire
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import environment_id, model_id, parse_asset

if TYPE_CHECKING:
    from amphitrite.cli.session.rest_client import Client
    from amphitrite.cli.terminal.progress import Progress

_IDS = {"models": model_id, "environments": environment_id}
_WITHOUT = {
    "codes": "there are no scoring scripts here; Triton serves the model's files itself",
    "data": "there are no data assets here",
}


def register(client: Client, document: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Upload the files at ``path`` and register them under ``name`` and ``version`` (the next one when absent).

    Returns the version's resource. Raises Error LocalFileError, and what the server answers.
    """
    name, version = document["name"], document.get("version") or next_version(client, document["name"])
    uri = _upload(client, document, progress, name, version)
    return _put(client, name, version, wire.model_to_wire(document, uri))


def register_inline(client: Client, document: Mapping[str, Any], progress: Progress) -> str:
    """The ARM id of the version for a deployment's inline ``model``.

    With a name and a version it becomes that version; with a name alone the newest version when that has these very
    files, else the next one; without a name an anonymous one that is called by its content, as with Azure ML's clients.
    """
    name, version = document.get("name"), document.get("version")
    if name is not None and version is not None:
        return str(register(client, document, progress)["id"])
    if name is None:
        uri = _upload(client, document, progress, "anonymous", "1")
        body = wire.model_to_wire(document, uri, anonymous=True)
        return str(_put(client, content_name(uri), "1", body)["id"])
    uri = _upload(client, document, progress, name, "")
    newest = find_latest(client, name)
    if newest is not None and newest["properties"]["modelUri"] == uri:
        return str(newest["id"])
    version = next_version(client, name)
    return str(_put(client, name, version, wire.model_to_wire(document, uri))["id"])


def content_name(uri: str) -> str:
    """What a model without a name is called: by its content. Raises Error BadArgument."""
    digest = uri.partition("/LocalUpload/")[2].partition("/")[0]
    if not digest:
        message = f"model.path: `{uri}` is not on this machine, so the model needs a name and a version"
        raise Error("BadArgument", message, target="model")
    return digest


def next_version(client: Client, name: str) -> str:
    """The number after the highest version of ``name``; ``1`` for a new name."""
    container = client.find(model_id(client.workspace, name))
    return str(container["properties"]["nextVersion"]) if container is not None else "1"


def find_latest(client: Client, name: str, kind: Literal["models", "environments"] = "models") -> dict[str, Any] | None:
    """The version of ``name`` that was created last; None when there is none."""
    try:
        newest = client.get(
            f"{_IDS[kind](client.workspace, name)}/versions", **{"$orderBy": "createdtime desc", "$top": "1"}
        )["value"]
    except Error as error:
        if error.code == "ResourceNotFound":
            return None
        raise
    return newest[0] if newest else None


def version_of(
    client: Client,
    name: str,
    version: str | None,
    label: str | None,
    kind: Literal["models", "environments"] = "models",
) -> str:
    """The version that ``version`` or ``label`` names. Raises Error UsageError, ResourceNotFound."""
    if version is not None and label is not None:
        raise Error("UsageError", "Cannot specify both version and label.")
    if version is not None:
        return version
    if label is None:
        raise Error("UsageError", "Must provide either version or label")
    if label != "latest":
        raise Error("BadArgument", f"there is no label `{label}`", hint="the one label is `latest`")
    newest = find_latest(client, name, kind)
    if newest is None:
        raise Error("ResourceNotFound", f"there is no {kind.removesuffix('s')} {name}", target=name)
    return str(newest["name"])


def resolve(client: Client, kind: Literal["models", "environments", "codes", "data"], reference: str) -> str:
    """The ARM id that a reference in a document means. Raises Error BadArgument, ResourceNotFound."""
    if kind in ("codes", "data") and not reference.startswith(("/", "azureml:/")):
        raise Error("Unsupported", f"`{reference}`: {_WITHOUT[kind]}", target=reference, hint="remove the field")
    if reference.startswith("azureml://"):
        return reference  # Of a registry: whether there is one, the server says.
    parsed = parse_asset(reference)
    if parsed is None or reference.startswith(("/", "azureml:/")):
        return reference.removeprefix("azureml:")
    name, version, label = parsed
    if version is None and label is None:
        raise Error(
            "BadArgument",
            f"Failed to extract version when parsing asset {name} of type {kind} as arm id. Version must be provided.",
            target=reference,
            hint=f"azureml:{name}:1, or azureml:{name}@latest",
        )
    assert kind in ("models", "environments")
    return _IDS[kind](client.workspace, name, version_of(client, name, version, label, kind))


def set_archived(
    client: Client,
    name: str,
    version: str | None,
    label: str | None,
    *,
    archived: bool,
    kind: Literal["models", "environments"] = "models",
) -> None:
    """Archive or restore a version, or without version and label all of them. Raises Error ResourceNotFound."""
    number = version_of(client, name, version, label, kind) if version is not None or label is not None else None
    path = _IDS[kind](client.workspace, name, number)
    properties = {**client.get(path)["properties"], "isArchived": archived}
    client.send("PUT", path, json={"properties": properties})


def _upload(client: Client, document: Mapping[str, Any], progress: Progress, name: str, version: str) -> str:
    path = str(document["path"])
    if is_remote(path):
        return path
    model_validation.check(document)
    return uploads.upload(client, Path(path), progress, name=name, version=version)


def _put(client: Client, name: str, version: str, body: dict[str, Any]) -> dict[str, Any]:
    resource: dict[str, Any] = client.send("PUT", model_id(client.workspace, name, version), json=body).json()
    return resource
