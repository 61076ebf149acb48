"""Whether the process is up, and whether it can do its work. Open to everybody, and therefore silent about everything
else.

Decides the two answers. Must not know what readiness is made of.
"""

from __future__ import annotations

from fastapi import APIRouter

from amphitrite.controlplane.api.http.dependencies import Here

router = APIRouter()


@router.get("/healthz")
def healthz(here: Here) -> dict[str, str]:
    """200 while the process answers at all. ``role``: ``leader`` changes things, a ``follower`` only takes requests."""
    return {"status": "ok", "role": "follower" if here.leads_since() is None else "leader"}


@router.get("/readyz")
def readyz(here: Here) -> dict[str, str]:
    """503 while the store does not answer or the reconciler does not go round."""
    here.ready()
    return {"status": "ready"}
