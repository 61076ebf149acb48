"""Replies about endpoints, deployments and containers: the wire body with everything that clients
expect.

Decides which defaults, URLs and states are added to the stored document. Fields that Azure's SDK
requires are always present: ``systemData``, ``properties.properties``, ``sku``, ``scaleSettings``.
Must not know what a document means.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from starlette.requests import Request

from amphitrite.controlplane.api.azure import operation_addresses, scoring_documents
from amphitrite.controlplane.core.desired import scale_settings
from amphitrite.controlplane.core.rules import accepted_fields
from amphitrite.controlplane.core.scaling.scales import count_in_force
from amphitrite.controlplane.services import document_defaults
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.assets.catalogue import Container
from amphitrite.controlplane.store.state.store import Record
from amphitrite.schemas import wire
from amphitrite.schemas.casing import camel
from amphitrite.schemas.names import PROVIDER, deployment_id, endpoint_id
from amphitrite.schemas.wire.endpoints import ENDPOINT_ID, OPERATION

Reply = dict[str, Any]

#: The user of all resources: there is one token and therefore one user.
USER = "local"


def endpoint(request: Request, record: Record, services: Services) -> Reply:
    """Azure's OnlineEndpoint resource. ``scoringUri`` ends with a slash."""
    document = document_defaults.fill(record.document, document_defaults.of_endpoint(record.document))
    body: Reply = wire.endpoint_to_wire(document, services.settings.location)
    scoring = services.settings.scoring_uri(record.name)
    body["properties"] |= {
        "scoringUri": scoring,
        "swaggerUri": scoring_documents.address(request, record.name),
        **_state(record),
    }
    _add_operation(body, request, record, services)
    arm_id = endpoint_id(services.workspace, record.name)
    if record.generation:
        body["properties"]["properties"] |= {ENDPOINT_ID: arm_id.lower()}
    return {
        "id": arm_id,
        "name": record.name,
        "type": f"{PROVIDER}/workspaces/onlineEndpoints",
        "kind": "K8S" if record.document.get("compute") else "Managed",
        **body,
        "systemData": system_data(record.created_at, record.modified_at),
    }


def deployment(request: Request, record: Record, endpoint_name: str, services: Services) -> Reply:
    """Azure's OnlineDeployment resource, with the request settings and probes that are in force."""
    document = document_defaults.fill(record.document, document_defaults.of_deployment(record.document))
    body: Reply = wire.deployment_to_wire(document, services.settings.location)
    if record.document.get("type") == "kubernetes":
        # Always an object, because the SDK reads its keys.
        body["properties"].setdefault("containerResourceRequirements", {})
    body["properties"] |= _state(record, accepted_fields.notes(record.document))
    settings, scale = scale_settings.of_document(record.document), record.scale
    body["sku"]["capacity"] = count_in_force(settings, body["sku"]["capacity"], scale)
    if scale is not None and scale.reason:
        last = {"lastScaleTime": timestamp(scale.changed_at), "lastScaleReason": scale.reason}
        recommended = {} if scale.recommended is None else {"recommendedInstances": scale.recommended}
        body["properties"]["status"] = {**body["properties"].get("status", {}), **last, **recommended}
    _add_operation(body, request, record, services)
    return {
        "id": deployment_id(services.workspace, endpoint_name, record.name),
        "name": record.name,
        "type": f"{PROVIDER}/workspaces/onlineEndpoints/deployments",
        **body,
        "systemData": system_data(record.created_at, record.modified_at),
    }


def container(asset: Container, kind: str, arm_id: str) -> Reply:
    """Azure's ModelContainer or EnvironmentContainer resource. ``kind``: ``models`` or
    ``environments``, as in the path."""
    return {
        "id": arm_id,
        "name": asset.name,
        "type": f"{PROVIDER}/workspaces/{kind}",
        "properties": {
            "description": None,
            "tags": dict(asset.tags),
            "properties": dict(asset.properties),
            "isArchived": asset.is_archived,
            "latestVersion": asset.latest_version,
            "nextVersion": asset.next_version,
        },
        "systemData": system_data(asset.created_at, asset.modified_at),
    }


def system_data(created_at: float, modified_at: float) -> Reply:
    """Azure's systemData object. Times: seconds since the epoch."""
    return {
        "createdBy": USER,
        "createdByType": "User",
        "createdAt": timestamp(created_at),
        "lastModifiedBy": USER,
        "lastModifiedByType": "User",
        "lastModifiedAt": timestamp(modified_at),
    }


def timestamp(seconds: float) -> str:
    """``2026-11-20T16:54:09.538476+00:00``, always with microseconds, which clients expect."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="microseconds")


def _add_operation(body: Reply, request: Request, record: Record, services: Services) -> None:
    """The address of the last change's progress, among the user's properties as in Azure ML. Its
    REST script reads it there. A preview of a new resource (generation 0) has none."""
    if record.generation:
        properties = body["properties"]
        address = operation_addresses.newest(request, services, record)
        properties["properties"] = {**(properties.get("properties") or {}), OPERATION: address}


def _state(record: Record, notes: Sequence[str] = ()) -> Reply:
    """``notes``: more than the status has."""
    status = record.status
    facts = {camel(name): value for name, value in status.facts.items()}
    if notes:
        facts["notes"] = [*facts.get("notes", ()), *notes]
    details = {"phase": status.phase, "message": status.message, **facts}
    state: Reply = {"provisioningState": status.state}
    if any(details.values()):
        state["status"] = {name: value for name, value in details.items() if value not in ("", None)}
    if status.error is not None:
        state["error"] = status.error.to_body()
    return state
