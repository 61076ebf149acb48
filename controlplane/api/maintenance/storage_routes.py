"""Routes of the storage: what takes space, and the deletion of what nobody needs.

Decides the HTTP form. Must not know how space is counted or freed.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.core.storage.garbage import AGE_MIN_S, AGE_S
from amphitrite.controlplane.services import disk_usage

router = APIRouter(prefix="/maintenance/v1")

#: Seconds. Uploads take hours; younger ones are never garbage.
Age = Annotated[float, Query(alias="olderThan", ge=AGE_MIN_S, le=10 * 365 * 24 * 3600)]
DryRun = Annotated[bool, Query(alias="dryRun")]


@router.get("/storage")
def storage(here: Here) -> dict[str, Any]:
    """What takes space, in bytes."""
    return disk_usage.usage(here)


@router.post("/prune")
def prune(here: Here, age: Age = AGE_S, dry_run: DryRun = False) -> dict[str, Any]:
    """Deletes what nobody needs, or says with ``dryRun`` what that is."""
    return disk_usage.prune(here, age_s=age, dry_run=dry_run)
