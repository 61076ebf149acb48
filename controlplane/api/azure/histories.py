"""Routes of history: earlier traffic of endpoints, earlier documents of deployments, and the way
back.

Decides the HTTP form. Azure ML has no such routes. Must not know which revisions are kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from amphitrite.controlplane.api.azure import operations, resource_bodies
from amphitrite.controlplane.api.http.authors import By
from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.request_bodies import Body, IfMatch, positive
from amphitrite.controlplane.api.http.workspace_scope import IN_WORKSPACE, WORKSPACE
from amphitrite.controlplane.core.history import deployment_history, traffic_history
from amphitrite.controlplane.core.history.revisions import Revision
from amphitrite.controlplane.services import deployment_changes, endpoint_changes

router = APIRouter(prefix=f"{WORKSPACE}/onlineEndpoints/{{endpoint}}", dependencies=IN_WORKSPACE)


@router.get("/trafficHistory")
def traffic(endpoint: str, services: Here) -> dict[str, Any]:
    """The changes of an endpoint's traffic, newest first."""
    record = services.store.get_endpoint(endpoint)
    found = traffic_history.changes(services.store.revisions(record.ref))
    return {
        "value": [
            {
                **_revision(one.revision),
                "from": dict(one.before.live),
                "to": dict(one.after.live),
                "mirrorFrom": dict(one.before.mirrored),
                "mirrorTo": dict(one.after.mirrored),
            }
            for one in found
        ]
    }


@router.post("/restoreTraffic")
def restore_traffic(
    request: Request, endpoint: str, body: Body, conditions: IfMatch, by: By, services: Here
) -> Response:
    """Bring back the traffic of ``revision``; without it, that before the last change."""
    number = _number(body)
    by = replace(by, cause="undo" if number is None else "restore")
    with services.store.exclusive():
        record, operation = endpoint_changes.set_traffic(services, endpoint, number, by, if_match=conditions.if_match)
    services.wake()
    return operations.changed(request, services, record, operation, resource_bodies.endpoint(request, record, services))


@router.get("/deployments/{name}/history")
def deployment(endpoint: str, name: str, services: Here) -> dict[str, Any]:
    """The revisions of a deployment that are kept, newest first."""
    record = services.store.get_deployment(endpoint, name)
    found = deployment_history.changes(services.store.revisions(record.ref))
    return {
        "value": [
            {
                **_revision(one.revision),
                "model": one.revision.document.get("model"),
                "instanceCount": int(one.revision.document.get("instance_count", 1)),
                "changed": list(one.changed),
            }
            for one in found
        ]
    }


@router.get("/deployments/{name}/scaleHistory")
def scale(endpoint: str, name: str, services: Here) -> dict[str, Any]:
    """The changes of a deployment's number of instances by scalers, newest first."""
    record = services.store.get_deployment(endpoint, name)
    return {
        "value": [
            {
                "time": resource_bodies.timestamp(event.at),
                "from": event.before,
                "to": event.after,
                "reason": event.reason,
                "by": event.by,
                "mode": event.mode,
            }
            for event in reversed(services.store.scale_events(record.ref))
        ]
    }


@router.post("/deployments/{name}/rollback")
def roll_back(
    request: Request, endpoint: str, name: str, body: Body, conditions: IfMatch, by: By, services: Here
) -> Response:
    """Bring back the document of ``revision``; without it, the newest one that differs."""
    number = _number(body)
    parent = services.store.get_endpoint(endpoint)
    with services.store.exclusive():
        record, operation = deployment_changes.roll_back(
            services, endpoint, name, number, replace(by, cause="rollback"), if_match=conditions.if_match
        )
    services.wake()
    shown = resource_bodies.deployment(request, record, parent.name, services)
    return operations.changed(request, services, record, operation, shown)


def _number(body: dict[str, Any]) -> int | None:
    if body.get("revision") is None:
        return None
    return positive(body["revision"], "revision", "a number of the history")


def _revision(of: Revision) -> dict[str, Any]:
    return {
        "revision": of.number,
        "time": resource_bodies.timestamp(of.at),
        "author": of.author or resource_bodies.USER,
        "reason": of.reason or None,
        "cause": of.cause,
    }
