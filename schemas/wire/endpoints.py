"""The wire form of endpoints.

Decides the field of each wire property, and which properties are read-only. Must not validate
values.
"""

from __future__ import annotations

import json
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
#: The entry with the endpoint's ARM id in lower case, as in Azure ML, whose scripts read it there.
ENDPOINT_ID = "azureml.onlineendpointid"
#: Entries of ``properties`` that only responses have. Clients send them back.
INJECTED = frozenset({OPERATION})
#: The same for endpoints, with values of systemData that Azure's SDK copies into ``properties``.
INJECTED_IN_ENDPOINTS = INJECTED | {ENDPOINT_ID, "createdBy", "createdAt", "lastModifiedAt"}


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
#: The entry of ``properties`` that holds a document's ``rollout`` as JSON. Azure's SDK drops
#: properties that it does not know, but keeps these entries.
ROLLOUT = "amphitrite.rollout"
_READ_ONLY = STATE | {"scoringUri", "swaggerUri"}


def endpoint_to_wire(document: Mapping[str, Any], location: str) -> dict[str, Any]:
    """The PUT body of an endpoint; ``compute`` must be an ARM id (with or without ``azureml:``)."""
    body: dict[str, Any] = {"authMode": "Key", "properties": {}, "traffic": {}, "mirrorTraffic": {}}
    body.update(write(PROPERTIES, document))
    if (rollout := document.get("rollout")) is not None:
        text = json.dumps(rollout, sort_keys=True, separators=(",", ":"))
        body["properties"] = {**body["properties"], ROLLOUT: text}
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
    document = _with_rollout(reader, document)
    reader.finish(f"onlineEndpoints/{name}")
    return without_system_values(document, INJECTED_IN_ENDPOINTS)


def entries(body: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of a response's ``properties``, without what is shown as a field of its own."""
    return {name: value for name, value in (body.get("properties") or {}).items() if name != ROLLOUT}


def rollout(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The document's ``rollout`` in the ``properties`` of a response."""
    text = (body.get("properties") or {}).get(ROLLOUT)
    return None if text is None else dict(json.loads(text))


def _with_rollout(reader: Reader, document: dict[str, Any]) -> dict[str, Any]:
    """The document with ``rollout`` in place of the entry that holds it."""
    entries = document.get("properties")
    if not isinstance(entries, Mapping) or entries.get(ROLLOUT) is None:
        return document
    try:
        rollout = json.loads(str(entries[ROLLOUT]))
    except (ValueError, RecursionError):
        rollout = None
    if not isinstance(rollout, Mapping):
        example = 'write it such as {"steps": [10, 100], "max_error_rate": "1%"}'
        reader.refuse(("properties", "properties", ROLLOUT), "must be a JSON object, as text", example)
        return document
    return {**without_system_values(document, {ROLLOUT}), "rollout": rollout}


def without_system_values(document: dict[str, Any], names: Collection[str] = INJECTED) -> dict[str, Any]:
    """The document without these entries of ``properties``."""
    properties = document.get("properties")
    if isinstance(properties, Mapping):
        entries = {key: value for key, value in properties.items() if key not in names}
        document = {key: value for key, value in document.items() if key != "properties"}
        if entries:
            document["properties"] = entries
    return document
