"""Routes of rollouts.

Decides the HTTP form: where rollouts are started, read, and asked for something. Must not know the
rules of a rollout.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from amphitrite.controlplane.api.delivery import rollout_bodies
from amphitrite.controlplane.api.http.authors import By
from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.request_bodies import Body
from amphitrite.controlplane.api.http.workspace_scope import IN_WORKSPACE, WORKSPACE
from amphitrite.controlplane.core.history.revisions import Author
from amphitrite.controlplane.core.rollouts.requests import Request
from amphitrite.controlplane.services import rollout_changes
from amphitrite.controlplane.services.services import Services
from amphitrite.schemas.casing import snake
from amphitrite.schemas.errors import Error

router = APIRouter(prefix=f"{WORKSPACE}/onlineEndpoints/{{endpoint}}/rollouts", dependencies=IN_WORKSPACE)


@router.get("")
def list_(endpoint: str, services: Here) -> dict[str, Any]:
    """The rollouts that are kept, newest first."""
    return {"value": [rollout_bodies.rollout(one) for one in services.store.rollouts(endpoint)]}


@router.post("")
def start(endpoint: str, body: Body, by: By, services: Here) -> Response:
    """``to``, and the fields of a rollout in camelCase."""
    to = body.get("to")
    if not isinstance(to, str) or not to:
        raise Error("BadArgument", "to must name the deployment that gets the traffic", target="to")
    written = {snake(name): value for name, value in body.items() if name != "to"}
    with services.store.exclusive():
        rollout = rollout_changes.start(services, endpoint, to, written, by)
    services.wake()
    return JSONResponse(rollout_bodies.rollout(rollout), status_code=201)


@router.get("/{number}")
def get(endpoint: str, number: int, services: Here) -> dict[str, Any]:
    return rollout_bodies.rollout(rollout_changes.find(services, endpoint, number))


@router.post("/{number}/pause")
def pause(endpoint: str, number: int, by: By, services: Here) -> dict[str, Any]:
    return _ask(services, endpoint, number, "pause", by)


@router.post("/{number}/resume")
def resume(endpoint: str, number: int, by: By, services: Here) -> dict[str, Any]:
    return _ask(services, endpoint, number, "resume", by)


@router.post("/{number}/promote")
def promote(endpoint: str, number: int, body: Body, by: By, services: Here) -> dict[str, Any]:
    """The next step now; with ``full`` the last one, and the end."""
    full = body.get("full", False)
    if not isinstance(full, bool):
        raise Error("BadArgument", "full must be true or false", target="full")
    return _ask(services, endpoint, number, "promote", by, full)


@router.post("/{number}/abort")
def abort(endpoint: str, number: int, by: By, services: Here) -> dict[str, Any]:
    return _ask(services, endpoint, number, "abort", by)


def _ask(
    services: Services, endpoint: str, number: int, request: Request, by: Author, full: bool = False
) -> dict[str, Any]:
    with services.store.exclusive():
        rollout = rollout_changes.ask(services, endpoint, number, request, full, by)
    services.wake()
    return rollout_bodies.rollout(rollout)
