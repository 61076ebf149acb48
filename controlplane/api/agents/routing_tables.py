"""Routes of the data-plane agents: the routing table, and what they report.

Decides how long an agent waits and what a report must say. Must not know Envoy or plans.
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
#: Far beyond what counting up reaches, and a number in JSON and in any database.
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
    """The table as soon as its version is greater than ``after``; 204 after ``wait_s`` seconds without one.

    ``digest``: of the content that the agent has as version ``after``. Where ours of that version has another, the
    agent's is of another history, and it is told at once. ``changes``: the agent takes what has changed since, instead
    of the whole table, where its table is known here.
    """
    text = await run_sync(
        _news, here.feed, after, digest, wait_s, changes, limiter=here.waiting, abandon_on_cancel=True
    )
    return Response(status_code=204) if text is None else Response(text, media_type="application/json")


def _news(feed: TableFeed, after: int, digest: str, wait_s: float, changes: bool) -> str | None:
    now = feed.wait(after - 1, 0.0) if digest else None
    same = now is not None and now.version == after and feed.text.digest(now) == digest
    if now is not None and now.version == after and not same:
        return feed.text.whole(now)
    table = feed.wait(after, wait_s)
    if table is None:
        return None
    since = (now if same else _former(feed, after, digest)) if changes else None
    return feed.text.whole(table) if since is None else encode_change(since, table)


def _former(feed: TableFeed, version: int, digest: str) -> RoutingTable | None:
    """The table that the agent has, if that is ours."""
    former = feed.former(version)
    return former if former is not None and feed.text.digest(former) == digest else None


@router.get("/agents")
def agents(here: Here) -> dict[str, Any]:
    """Every agent that has reported lately, live or not."""
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
            for report, proxy in here.agents.known()
        ]
    }


@router.put("/agents/{agent_id}", status_code=204)
def report(agent_id: str, body: Body, here: Here) -> None:
    """What an agent's proxy has in force."""
    envoy = {} if body.get("envoy") is None else body["envoy"]
    if not isinstance(envoy, dict):
        raise Error("BadArgument", "envoy must be an object of pid and version", target="envoy")
    said = AgentReport(
        id=agent_id,
        acknowledged_version=_version(body, "acknowledged_version") or 0,
        drained_version=_version(body, "drained_version") or 0,
        seen_at=here.clock(),
        rejected_version=_version(body, "rejected_version"),
        error=_text(body, "error"),
    )
    here.agents.report(said, Proxy(_version(envoy, "pid"), _text(envoy, "version")))


@router.delete("/agents/{agent_id}", status_code=204)
def farewell(agent_id: str, here: Here) -> None:
    """An agent has ended, and its proxy with it: nothing waits for it any more."""
    here.agents.forget(agent_id)


def _version(body: dict[str, Any], name: str) -> int | None:
    if body.get(name) is None:
        return None
    value = whole(body[name])
    if value is None or value < 0:
        raise Error("BadArgument", f"{name} is {body[name]!r}; a whole number is needed", target=name)
    if value > VERSION_MAX:
        raise Error("BadArgument", f"{name} is greater than {VERSION_MAX}", target=name)
    return value


def _text(body: dict[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise Error("BadArgument", f"{name} is {value!r}; text is needed", target=name)
    return value
