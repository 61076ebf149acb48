"""The wire form of endpoints.

Decides the field of each wire property, and which properties are read-only. Must not validate
values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from amphitrite.schemas import casing
from amphitrite.schemas.wire.field_tables import Field, Reader, enumeration, write

#: Properties of a resource that are not part of its document.
ENVELOPE = frozenset({"id", "name", "type", "kind", "location", "systemData", "etag"})
#: Properties below ``properties`` that only responses have.
STATE = frozenset({"provisioningState", "status", "error"})
#: The entry of a response's ``properties`` with the address of its last operation, as in Azure ML.
OPERATION = "AzureAsyncOperationUri"
#: Entries of ``properties`` that only responses have. Clients send them back.
INJECTED = frozenset({OPERATION})
#: The same for endpoints, with values of systemData that Azure's SDK copies into ``properties``.
INJECTED_IN_ENDPOINTS = INJECTED | {"createdBy", "createdAt", "lastModifiedAt"}


def _write_identity(identity: Mapping[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"type": casing.to_wire(identity["type"])}
    assigned = identity.get("user_assigned_identities")
    if assigned:
        body["userAssignedIdentities"] = {entry["resource_id"]: {} for entry in assigned}
    return body


def _read_identity(body: object) -> dict[str, Any]:
    if not isinstance(body, Mapping):
        raise ValueError("must be a JSON object")
    unknown = set(body) - {"type", "userAssignedIdentities", "principalId", "tenantId"}
    if unknown:
        raise ValueError(f"unknown property {sorted(map(str, unknown))[0]}")
    kind = casing.to_document(body.get("type", "SystemAssigned"))
    assigned = body.get("userAssignedIdentities")
    assigned = {} if assigned is None else assigned
    if not isinstance(assigned, Mapping):
        raise ValueError("userAssignedIdentities must be a JSON object")
    if kind == "system_assigned" and not assigned:
        return {}  # the default, which every client sends
    document: dict[str, Any] = {"type": kind}
    if assigned:
        document["user_assigned_identities"] = [{"resource_id": name} for name in assigned]
    return document


IDENTITY = Field("identity", "identity", _write_identity, _read_identity)
TAGS = Field("tags", "tags")
PROPERTIES = (
    Field("description", "description"),
    enumeration("auth_mode", "authMode"),
    Field("properties", "properties"),
    Field("traffic", "traffic"),
    Field("mirror_traffic", "mirrorTraffic"),
    enumeration("public_network_access", "publicNetworkAccess"),
    Field("compute", "compute", lambda reference: reference.removeprefix("azureml:")),
)
_READ_ONLY = STATE | {"scoringUri", "swaggerUri"}


def endpoint_to_wire(document: Mapping[str, Any], location: str) -> dict[str, Any]:
    """The PUT body of an endpoint; ``compute`` must be an ARM id (with or without ``azureml:``)."""
    body = {"authMode": "Key", "properties": {}, "traffic": {}, "mirrorTraffic": {}}
    body.update(write(PROPERTIES, document))
    identity = write([IDENTITY], document)
    return {
        "location": location,
        "tags": document.get("tags") or {},
        "identity": identity.get("identity", {"type": "SystemAssigned"}),
        "properties": body,
    }


def endpoint_from_wire(name: str, body: object) -> dict[str, Any]:
    """The document of endpoint ``name``. Raises Error BadArgument."""
    reader = Reader()
    envelope = reader.object(body, ())
    document: dict[str, Any] = {"name": name}
    document.update(reader.read([TAGS, IDENTITY], envelope, (), ENVELOPE | {"properties", "sku"}))
    properties = reader.object(envelope.get("properties"), ("properties",))
    document.update(reader.read(PROPERTIES, properties, ("properties",), _READ_ONLY))
    reader.finish(f"onlineEndpoints/{name}")
    return without_system_values(document, INJECTED_IN_ENDPOINTS)


def without_system_values(document: dict[str, Any], names: Collection[str] = INJECTED) -> dict[str, Any]:
    """The document without these entries of ``properties``."""
    properties = document.get("properties")
    if isinstance(properties, Mapping):
        entries = {key: value for key, value in properties.items() if key not in names}
        document = {key: value for key, value in document.items() if key != "properties"}
        if entries:
            document["properties"] = entries
    return document
