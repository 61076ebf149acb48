"""What the API answers about endpoints, deployments and containers: the wire body with everything that clients rely on.

Decides which defaults, addresses and states a reply adds to the stored document. Fields that Azure's SDK cannot do
without are there always: ``systemData``, ``properties.properties``, ``sku``, ``scaleSettings``. Must not know what a
document means.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from amphitrite.controlplane.services import document_defaults
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.assets.catalogue import Container
from amphitrite.controlplane.store.state.store import Record
from amphitrite.schemas import wire
from amphitrite.schemas.casing import to_wire
from amphitrite.schemas.names import PROVIDER, deployment_id, endpoint_id

Reply = dict[str, Any]

#: Whose name everything carries: there is one token and therefore one user.
USER = "local"


def endpoint(record: Record, services: Services) -> Reply:
    """B7. ``scoringUri`` ends with a slash; ``swaggerUri`` is Triton's own description of the server, below it."""
    document = document_defaults.fill(record.document, document_defaults.of_endpoint(record.document))
    body: Reply = wire.endpoint_to_wire(document, services.settings.location)
    scoring = services.settings.scoring_uri(record.name)
    body["properties"] |= {"scoringUri": scoring, "swaggerUri": f"{scoring}v2", **_state(record)}
    return {
        "id": endpoint_id(services.workspace, record.name),
        "name": record.name,
        "type": f"{PROVIDER}/workspaces/onlineEndpoints",
        "kind": "K8S" if record.document.get("compute") else "Managed",
        **body,
        "systemData": system_data(record.created_at, record.modified_at),
    }


def deployment(record: Record, endpoint_name: str, services: Services) -> Reply:
    """B8, with the request settings and probes that are in force."""
    document = document_defaults.fill(record.document, document_defaults.of_deployment(record.document))
    body: Reply = wire.deployment_to_wire(document, services.settings.location)
    if record.document.get("type") == "kubernetes":
        # An object always: the SDK reads its keys.
        body["properties"].setdefault("containerResourceRequirements", {})
    body["properties"] |= _state(record)
    return {
        "id": deployment_id(services.workspace, endpoint_name, record.name),
        "name": record.name,
        "type": f"{PROVIDER}/workspaces/onlineEndpoints/deployments",
        **body,
        "systemData": system_data(record.created_at, record.modified_at),
    }


def container(found: Container, kind: str, arm_id: str) -> Reply:
    """B4. ``kind``: the word of the path, ``models`` or ``environments``."""
    return {
        "id": arm_id,
        "name": found.name,
        "type": f"{PROVIDER}/workspaces/{kind}",
        "properties": {
            "description": None,
            "tags": dict(found.tags),
            "properties": dict(found.properties),
            "isArchived": found.is_archived,
            "latestVersion": found.latest_version,
            "nextVersion": found.next_version,
        },
        "systemData": system_data(found.created_at, found.modified_at),
    }


def system_data(created_at: float, modified_at: float) -> Reply:
    """Who and when; times in seconds since the epoch."""
    return {
        "createdBy": USER,
        "createdByType": "User",
        "createdAt": timestamp(created_at),
        "lastModifiedBy": USER,
        "lastModifiedByType": "User",
        "lastModifiedAt": timestamp(modified_at),
    }


def timestamp(seconds: float) -> str:
    """``2026-11-20T16:54:09.538476+00:00``, always with microseconds, as clients parse it."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="microseconds")


def _state(record: Record) -> Reply:
    status = record.status
    facts = {_camel(name): value for name, value in status.facts.items()}
    shown = {"phase": status.phase, "message": status.message, **facts}
    state: Reply = {"provisioningState": status.state}
    if any(shown.values()):
        state["status"] = {name: value for name, value in shown.items() if value not in ("", None)}
    if status.error is not None:
        state["error"] = status.error.to_body()
    return state


def _camel(name: str) -> str:
    word = to_wire(name)
    return word[:1].lower() + word[1:]
