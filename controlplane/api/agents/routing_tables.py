"""Routes of the data-plane agents: the routing table, and their reports.

Decides how long an agent waits and what a report contains. Must not know Envoy or plans.
"""

from __future__ import annotations

from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query
from starlette.responses import Response

from amphitrite.controlplane.agents.agent_registry import Proxy, TableFeed
from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.request_bodies import Body, whole
from amphitrite.controlplane.core.observed.observations import AgentReport
from amphitrite.dataplane.table.routing_table import RoutingTable
from amphitrite.dataplane.table.text_codec import encode_change
from amphitrite.schemas.errors import Error

WAIT_MAX_S = 60
#: Far above any real version, and exact as a JSON number and in every database.
VERSION_MAX = 2**53

router = APIRouter(prefix="/dataplane/v1")


@router.get("/routing-table")
async def routing_table(
    here: Here,
    after: Annotated[int, Query(ge=0, le=VERSION_MAX)] = 0,
    digest: Annotated[str, Query(max_length=64)] = "",
    wait_s: Annotated[float, Query(ge=0, le=WAIT_MAX_S)] = 0.0,
    changes: bool = False,
) -> Response:
    """The table once its version is greater than ``after``; 204 after ``wait_s`` seconds without
    one.

    ``digest``: of the content of the agent's version ``after``. If it differs from ours, the
    agent's table is of another history and it gets the current one at once. ``changes``: the agent
    accepts changes since its table instead of the whole table, if its table is known here.
    """
    text = await run_sync(
        _newer_table, here.feed, after, digest, wait_s, changes, limiter=here.waiting, abandon_on_cancel=True
    )
    return Response(status_code=204) if text is None else Response(text, media_type="application/json")


def _newer_table(feed: TableFeed, after: int, digest: str, wait_s: float, changes: bool) -> str | None:
    now = feed.wait(after - 1, 0.0) if digest else None
    same = now is not None and now.version == after and feed.text.digest(now) == digest
    if now is not None and now.version == after and not same:
        return feed.text.whole(now)
    table = feed.wait(after, wait_s)
    if table is None:
        return None
    since = (now if same else _known_table(feed, after, digest)) if changes else None
    return feed.text.whole(table) if since is None else encode_change(since, table)


def _known_table(feed: TableFeed, version: int, digest: str) -> RoutingTable | None:
    """The agent's table, if it is one of the last tables of this history."""
    previous = feed.previous_table(version)
    return previous if previous is not None and feed.text.digest(previous) == digest else None


@router.get("/agents")
def agents(here: Here) -> dict[str, Any]:
    """Every agent that has reported recently, live or not."""
    live = {report.id for report in here.agents.live(here.clock())}
    return {
        "value": [
            {
                "id": report.id,
                "live": report.id in live,
                "seen_at": report.seen_at,
                "acknowledged_version": report.acknowledged_version,
                "drained_version": report.drained_version,
                "rejected_version": report.rejected_version,
                "error": report.error,
                "envoy": {"pid": proxy.pid, "version": proxy.version},
            }
            for report, proxy in here.agents.all_reports()
        ]
    }


@router.put("/agents/{agent_id}", status_code=204)
def report(agent_id: str, body: Body, here: Here) -> None:
    """What is in force in an agent's proxy."""
    envoy = {} if body.get("envoy") is None else body["envoy"]
    if not isinstance(envoy, dict):
        raise Error("BadArgument", "envoy must be an object with pid and version", target="envoy")
    agent_report = AgentReport(
        id=agent_id,
        acknowledged_version=_version(body, "acknowledged_version") or 0,
        drained_version=_version(body, "drained_version") or 0,
        seen_at=here.clock(),
        rejected_version=_version(body, "rejected_version"),
        error=_text(body, "error"),
    )
    here.agents.report(agent_report, Proxy(_version(envoy, "pid"), _text(envoy, "version")))


@router.delete("/agents/{agent_id}", status_code=204)
def farewell(agent_id: str, here: Here) -> None:
    """The agent and its proxy have ended; nothing waits for them any more."""
    here.agents.forget(agent_id)


def _version(body: dict[str, Any], name: str) -> int | None:
    if body.get(name) is None:
        return None
    value = whole(body[name])
    if value is None or value < 0:
        raise Error("BadArgument", f"{name} is {body[name]!r}; it must be a whole number, 0 or more", target=name)
    if value > VERSION_MAX:
        raise Error("BadArgument", f"{name} is greater than {VERSION_MAX}", target=name)
    return value


def _text(body: dict[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise Error("BadArgument", f"{name} is {value!r}; it must be a string", target=name)
    return value
