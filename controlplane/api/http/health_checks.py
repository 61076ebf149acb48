"""Liveness and readiness of the process.

Decides the two responses. They need no token, so they reveal nothing else. Must not know what
readiness depends on.
"""

from __future__ import annotations

from fastapi import APIRouter

from amphitrite.controlplane.api.http.dependencies import Here

router = APIRouter()


@router.get("/healthz")
def healthz(here: Here) -> dict[str, str]:
    """200 while the process answers. ``role``: ``leader`` reconciles, ``follower`` only serves
    requests."""
    return {"status": "ok", "role": "follower" if here.leads_since() is None else "leader"}


@router.get("/readyz")
def readyz(here: Here) -> dict[str, str]:
    """503 while the store does not answer or the reconciler makes no progress."""
    here.ready()
    return {"status": "ready"}
