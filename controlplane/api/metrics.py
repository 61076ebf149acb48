"""Routes of the numbers: for Prometheus, and for agents that report theirs.

Decides only HTTP. Must not know what is counted.
"""

from __future__ import annotations

from importlib.metadata import version

from fastapi import APIRouter
from starlette.responses import Response

from amphitrite.controlplane import metrics_text
from amphitrite.controlplane.api.bodies import Body
from amphitrite.controlplane.api.services import Here
from amphitrite.dataplane.metrics import totals_from_json
from amphitrite.schemas.errors import Error

router = APIRouter()


@router.get("/metrics")
def metrics(here: Here) -> Response:
    """What every live proxy has counted, each under its own name: what one has counted never goes back."""
    live = [report.id for report in here.agents.live(here.clock())]
    text = metrics_text.render(here.metrics.newest(live), version("amphitrite"))
    return Response(text, media_type=metrics_text.CONTENT_TYPE)


@router.put("/dataplane/v1/agents/{agent_id}/metrics", status_code=204)
def put(agent_id: str, body: Body, here: Here) -> None:
    """What an agent's proxy has counted so far."""
    try:
        totals = totals_from_json(body)
    except ValueError as exc:
        raise Error("BadArgument", str(exc), target="metrics") from exc
    here.metrics.put(agent_id, totals, here.clock())
