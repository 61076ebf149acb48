"""Registers versions of environments from their documents.

Decides the name of an unnamed environment, and that nothing is registered for a deployment that
needs an image build or a scoring script. Must not know how deployments are stored, or how the
server uses an image.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amphitrite.schemas import wire
from amphitrite.schemas.errors import Error, Violation
from amphitrite.schemas.names import environment_id

if TYPE_CHECKING:
    from amphitrite.cli.documents.edits import Edit
    from amphitrite.cli.session.rest_client import Client
    from amphitrite.cli.terminal.progress import Progress

#: The name of inline environments without both a name and a version, as in Azure ML's clients.
ANONYMOUS = "CliV2AnonymousEnvironment"
_CONTENT = ("image", "conda_file", "build", "inference_config", "os_type")
DEFAULTS = {"os_type": "linux"}
_DIGITS = 32
_NO_BUILD = "the server does not build images"
_BUILD_YOURSELF = "build and push the image yourself (docker build, docker push), then set image: <name>:<tag>"


def register(client: Client, document: Mapping[str, Any], progress: Progress | None = None) -> dict[str, Any]:
    """Register a version under ``name`` and ``version``, and return its resource.

    Without a version it is the newest one if that has the same content, else the next one, as with
    Azure ML's clients. Raises Error Unsupported for a build context, LocalFileError for
    ``conda_file``, and the errors of the server.
    """
    if document.get("build"):
        raise unsupported_error([_build_violation(())])
    name, version = document["name"], document.get("version")
    if version is None:
        container = client.find(environment_id(client.workspace, name))
        version = "1"
        if container is not None:
            try:
                return _put(client, name, str(container["properties"]["latestVersion"]), document)
            except Error as error:
                if error.code != "Conflict":
                    raise
            version = str(container["properties"]["nextVersion"])
    return _put(client, name, str(version), document)


def update(client: Client, name: str, version: str, field_edits: Sequence[Edit]) -> dict[str, Any]:
    """Change the description, tags or properties of a version, and return its resource.

    Raises Error BadArgument for its content, which never changes.
    """
    from amphitrite.cli.documents import document_files, edits
    from amphitrite.cli.documents.document_files import Document

    path = environment_id(client.workspace, name, version)
    resource = client.get(path)
    current = wire.environment_from_wire(name, version, resource)
    edits.refuse_immutable_fields(
        field_edits, "environment", {field: current.get(field) for field in ("name", "version", *_CONTENT)}
    )
    source = Document(f"environment {name}:{version}", current, Path())
    document = document_files.validate_and_normalize(edits.apply(source, field_edits), "environment")
    archived, anonymous = wire.model_flags(resource)
    body = wire.environment_to_wire(
        document, conda_text=current.get("conda_file"), anonymous=anonymous, archived=archived
    )
    changed: dict[str, Any] = client.send("PUT", path, json=body).json()
    return changed


def with_conda_text(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with the text of ``conda_file`` in place of the path.

    Raises Error LocalFileError.
    """
    conda = document.get("conda_file")
    return {**document, **({"conda_file": _read(conda)} if isinstance(conda, str) else {})}


def same_content(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two documents, both with the text of ``conda_file``, have the same content."""
    return all(
        (one.get(field) or DEFAULTS.get(field)) == (other.get(field) or DEFAULTS.get(field)) for field in _CONTENT
    )


def inline_id(client: Client, document: Mapping[str, Any]) -> str:
    """The ARM id that an inline environment has, or will have after its registration."""
    name, version = document.get("name"), document.get("version")
    if name is not None and version is not None:
        return environment_id(client.workspace, str(name), str(version))
    content = {field: document[field] for field in _CONTENT if document.get(field) is not None}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:_DIGITS]
    return environment_id(client.workspace, ANONYMOUS, digest)


def register_inline(client: Client, document: Mapping[str, Any]) -> str:
    """Register a deployment's inline ``environment`` and return the ARM id of its version.

    Raises Error.
    """
    arm_id = inline_id(client, document)
    name, version = arm_id.split("/")[-3], arm_id.rpartition("/")[2]
    return str(_put(client, name, version, document, anonymous=name == ANONYMOUS)["id"])


def unsupported_fields(deployment: Mapping[str, Any]) -> list[Violation]:
    """A violation for each field of a deployment that no server supports."""
    value = deployment.get("environment")
    environment: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    violations = [_build_violation(("environment",))] if environment.get("build") else []
    if deployment.get("code_configuration"):
        message = "scoring scripts are not supported: Triton serves the model's files directly"
        hint = "rewrite the script as a model of Triton's python backend, and remove code_configuration"
        violations.append(Violation(("code_configuration",), message, hint))
    if environment.get("conda_file"):
        message = "conda environments are not supported: the server does not build images"
        hint = "use an image that contains the Python packages of the model, and remove conda_file"
        violations.append(Violation(("environment", "conda_file"), message, hint))
    return violations


def unsupported_error(violations: list[Violation]) -> Error:
    """One Error Unsupported with all ``violations``."""
    first = violations[0]
    return Error("Unsupported", str(first), target=str(first.path[0]), hint=first.hint, violations=violations)


def refuse_build(options: Mapping[str, str | None]) -> None:
    """Raises Error Unsupported for the first of the options that is set."""
    for option, value in options.items():
        if value is not None:
            raise Error("Unsupported", f"{option}: {_NO_BUILD}", target=option, hint=_BUILD_YOURSELF)


def _build_violation(at: tuple[str, ...]) -> Violation:
    return Violation((*at, "build"), _NO_BUILD, _BUILD_YOURSELF)


def _put(
    client: Client, name: str, version: str, document: Mapping[str, Any], *, anonymous: bool = False
) -> dict[str, Any]:
    conda = document.get("conda_file")
    body = wire.environment_to_wire(
        document, conda_text=_read(conda) if isinstance(conda, str) else None, anonymous=anonymous
    )
    resource: dict[str, Any] = client.send("PUT", environment_id(client.workspace, name, version), json=body).json()
    return resource


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8"
        raise Error("LocalFileError", f"cannot read conda_file {path}: {why}", target=path) from exc
