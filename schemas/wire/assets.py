"""The wire form of versions of models, environments and code.

Decides the field of each wire property, and refuses fields that a workspace does not support. Must
not read or upload files: paths, conda text and build contexts come from the caller.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from amphitrite.schemas import casing
from amphitrite.schemas.errors import Error
from amphitrite.schemas.wire.endpoints import ENVELOPE, STATE
from amphitrite.schemas.wire.field_tables import Field, Reader, enumeration, write

_TEXT_AND_TAGS = (Field("description", "description"), Field("tags", "tags"), Field("properties", "properties"))
MODEL = (
    Field("type", "modelType", read=casing.to_document),  # spelled as in documents: triton_model
    Field("path", "modelUri"),
    *_TEXT_AND_TAGS,
    Field("stage", "stage"),
    Field("flavors", "flavors"),
)
_ROUTE = (Field("port", "port"), Field("path", "path"))
INFERENCE_CONFIG = Field(
    "inference_config",
    "inferenceConfig",
    fields=(
        Field("liveness_route", "livenessRoute", fields=_ROUTE),
        Field("scoring_route", "scoringRoute", fields=_ROUTE),
        Field("readiness_route", "readinessRoute", fields=_ROUTE),
    ),
)
ENVIRONMENT = (
    *_TEXT_AND_TAGS,
    Field("image", "image"),
    Field("conda_file", "condaFile"),
    Field("build", "build", fields=(Field("path", "contextUri"), Field("dockerfile_path", "dockerfilePath"))),
    INFERENCE_CONFIG,
    enumeration("os_type", "osType"),
)
CODE = (Field("path", "codeUri"), *_TEXT_AND_TAGS)
_FLAGS = frozenset({"isArchived", "isAnonymous"})
_READ_ONLY = STATE | _FLAGS | {"jobName", "latestVersion", "nextVersion", "notes"}
_DATASTORES = frozenset({"workspaceblobstore", "azureml:workspaceblobstore", "azureml://datastores/workspaceblobstore"})


def model_to_wire(
    document: Mapping[str, Any], model_uri: str, *, anonymous: bool = False, archived: bool = False
) -> dict[str, Any]:
    """The PUT body of a model version with its files at ``model_uri``.

    Raises Error Unsupported for deployment templates and for a datastore other than the workspace's
    own.
    """
    refuse_datastore(document)
    for field in ("default_deployment_template", "allowed_deployment_templates"):
        if field in document:
            raise Error(
                "Unsupported",
                f"{field}: deployment templates are not supported, because there are no registries",
                target=field,
                hint="remove the field",
            )
    body: dict[str, Any] = {"modelType": "custom_model", "tags": {}, "properties": {}}
    body.update(write(MODEL, {**document, "path": model_uri}))
    return {"properties": {**body, "isAnonymous": anonymous, "isArchived": archived}}


def model_from_wire(name: str, version: str, body: object) -> dict[str, Any]:
    """The document of a model version; ``path`` is the modelUri. Raises Error BadArgument."""
    return _from_wire("models", MODEL, name, version, body)


def model_flags(body: Mapping[str, Any]) -> tuple[bool, bool]:
    """(archived, anonymous) of the body of a model, an environment or a container.

    Raises Error BadArgument for values other than booleans.
    """
    properties = body.get("properties") or {}
    flags = []
    for name in ("isArchived", "isAnonymous"):
        value = properties.get(name)
        if value is not None and not isinstance(value, bool):
            raise Error("BadArgument", f"properties.{name}: must be true or false", target=name)
        flags.append(bool(value))
    return flags[0], flags[1]


def container_from_wire(name: str, body: object) -> dict[str, Any]:
    """``description``, ``tags`` and ``properties`` of a container. Raises Error BadArgument."""
    reader = Reader()
    envelope = reader.object(body, ())
    reader.read((), envelope, (), ENVELOPE | {"properties"})
    properties = reader.object(envelope.get("properties"), ("properties",))
    document = {"name": name, **reader.read(_TEXT_AND_TAGS, properties, ("properties",), _READ_ONLY)}
    reader.finish(name)
    return document


def environment_to_wire(
    document: Mapping[str, Any],
    *,
    conda_text: str | None = None,
    context_uri: str | None = None,
    anonymous: bool = False,
    archived: bool = False,
) -> dict[str, Any]:
    """The PUT body of an environment version.

    ``conda_text``: the content of the file ``conda_file``. ``context_uri``: the address of the
    build context. An inline ``conda_file`` is sent as JSON, which is valid YAML.
    """
    refuse_datastore(document)
    values = dict(document)
    if conda_text is not None:
        values["conda_file"] = conda_text
    elif isinstance(values.get("conda_file"), Mapping):
        values["conda_file"] = json.dumps(values["conda_file"])
    if context_uri is not None:
        values["build"] = {**values.get("build", {}), "path": context_uri}
    return {"properties": {**write(ENVIRONMENT, values), "isAnonymous": anonymous, "isArchived": archived}}


def environment_from_wire(name: str, version: str, body: object) -> dict[str, Any]:
    """The document of an environment version; ``conda_file`` is text. Raises Error BadArgument."""
    return _from_wire("environments", ENVIRONMENT, name, version, body)


def code_to_wire(document: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a code version. It is always anonymous, because clients generate its name."""
    body = {"tags": {}, "properties": {}, **write(CODE, document)}
    return {"properties": {**body, "isAnonymous": True, "isArchived": False}}


def code_from_wire(name: str, version: str, body: object) -> dict[str, Any]:
    """The document of a code version; ``path`` is the codeUri. Raises Error BadArgument."""
    return _from_wire("codes", CODE, name, version, body)


def _from_wire(kind: str, fields: tuple[Field, ...], name: str, version: str, body: object) -> dict[str, Any]:
    reader = Reader()
    envelope = reader.object(body, ())
    reader.read((), envelope, (), ENVELOPE | {"properties"})
    properties = reader.object(envelope.get("properties"), ("properties",))
    document = {"name": name, "version": version}
    document.update(reader.read(fields, properties, ("properties",), _READ_ONLY))
    reader.finish(f"{kind}/{name}/versions/{version}")
    return document


def refuse_datastore(document: Mapping[str, Any]) -> None:
    """Raises Error Unsupported if ``datastore`` is not the workspace's only one."""
    datastore = document.get("datastore")
    if datastore is not None and datastore not in _DATASTORES:
        raise Error(
            "Unsupported",
            f"datastore: found {datastore!r}; allowed: workspaceblobstore",
            target="datastore",
            hint="remove the field",
        )
