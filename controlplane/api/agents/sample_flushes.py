"""The route by which agents send the demand that their proxies see.

Decides what a flush may contain. Must not know who reads it.
"""

from __future__ import annotations

from fastapi import APIRouter

from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.request_bodies import Body, whole
from amphitrite.dataplane.metrics.demand import samples_from_json
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

#: As large as the nanoseconds of a clock, and as a database's column.
FLUSH_MAX = 2**63 - 1

router = APIRouter(prefix="/dataplane/v1")


@router.put("/agents/{agent_id}/samples", status_code=204)
def put(agent_id: str, body: Body, here: Here) -> None:
    """What an agent has counted of scaled deployments since its last flush."""
    flush, now = whole(body.get("flush")), here.clock()
    if flush is None or not 0 <= flush <= FLUSH_MAX:
        raise Error("BadArgument", "flush must be a whole number, 0 or more", target="flush")
    try:
        samples = samples_from_json(body.get("samples"), now)
    except ValueError as exc:
        raise Error("BadArgument", str(exc), target="samples") from exc
    content = [
        [*map(key, one.series), one.at, one.seconds, *(one.in_flight, one.held, one.answered, one.busy_s, one.refused)]
        for one in samples
    ]
    if here.samples.put(agent_id, flush, content, now) and any(one.held for one in samples):
        here.wake_autoscaler()
