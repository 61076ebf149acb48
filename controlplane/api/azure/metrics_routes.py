"""Routes of metrics: for Prometheus, in Azure Monitor's format, of keys, and for agents that report
theirs.

Decides HTTP. Must not know what is counted.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from importlib.metadata import version
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.request_bodies import Body
from amphitrite.controlplane.api.http.workspace_scope import IN_WORKSPACE, WORKSPACE
from amphitrite.controlplane.metrics import azure_monitor, azure_query, minute_windows, prometheus
from amphitrite.controlplane.metrics.azure_names import OF_DEPLOYMENTS
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.reports.metric_minutes import KEEP_S
from amphitrite.dataplane.metrics.counters import TOKEN, totals_from_json
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import deployment_id, endpoint_id

_ENDPOINT = f"{WORKSPACE}/onlineEndpoints/{{name}}"
Text = Annotated[str | None, Query(max_length=1024)]

router = APIRouter()


@router.get("/metrics")
def metrics(here: Here) -> Response:
    """The counters of every live proxy, each with its own label, so that no series decreases."""
    live = [report.id for report in here.agents.live(here.clock())]
    text = prometheus.render(
        here.metrics.newest(live), here.key_uses.newest(), version("amphitrite"), here.store.instance_counts()
    )
    return Response(text, media_type=prometheus.CONTENT_TYPE)


@router.put("/dataplane/v1/agents/{agent_id}/metrics", status_code=204)
def put(agent_id: str, body: Body, here: Here) -> None:
    """The counters of an agent's proxy so far."""
    try:
        totals = totals_from_json(body)
    except ValueError as exc:
        raise Error("BadArgument", str(exc), target="metrics") from exc
    here.metrics.put(agent_id, totals, here.clock())
    here.key_uses.put(totals.used, here.clock())


@router.get(f"{_ENDPOINT}/providers/microsoft.insights/metrics", dependencies=IN_WORKSPACE)
def of_endpoint(
    request: Request,
    name: str,
    here: Here,
    metricnames: Text = None,
    timespan: Text = None,
    interval: Text = None,
    aggregation: Text = None,
    filter_: Annotated[str | None, Query(alias="$filter", max_length=1024)] = None,
) -> dict[str, Any]:
    """An endpoint's metrics. ``metrics.azure_query`` parses the parameters, without
    regard to case."""
    record = here.store.get_endpoint(name)
    query = azure_query.parse(dict(request.query_params), here.clock(), KEEP_S)
    address = endpoint_id(here.workspace, record.name)
    return azure_monitor.answer(query, address, here.settings.location, _minutes(here, record.name, query))


@router.get(
    f"{WORKSPACE}/onlineEndpoints/{{endpoint}}/deployments/{{name}}/providers/microsoft.insights/metrics",
    dependencies=IN_WORKSPACE,
)
def of_deployment(
    request: Request,
    endpoint: str,
    name: str,
    here: Here,
    metricnames: Text = None,
    timespan: Text = None,
    interval: Text = None,
    aggregation: Text = None,
    filter_: Annotated[str | None, Query(alias="$filter", max_length=1024)] = None,
) -> dict[str, Any]:
    """A deployment's metrics, and those of its instances. Parameters as of an endpoint's."""
    parent, record = here.store.get_endpoint(endpoint), here.store.get_deployment(endpoint, name)
    query = azure_query.parse(dict(request.query_params), here.clock(), KEEP_S, OF_DEPLOYMENTS)
    query = replace(query, filter={**query.filter, "deployment": record.name})
    address = deployment_id(here.workspace, parent.name, record.name)
    minutes = _minutes(here, parent.name, query)
    return azure_monitor.answer(query, address, here.settings.location, minutes, OF_DEPLOYMENTS)


def _minutes(here: Services, endpoint: str, query: azure_query.Query) -> dict[int, minute_windows.Counters]:
    first, last = query.start // 60, query.end // 60
    return minute_windows.by_minute(here.metrics.history(first, last), endpoint, first, last)


@router.get(f"{_ENDPOINT}/keyUsage", dependencies=IN_WORKSPACE)
def of_keys(name: str, here: Here) -> dict[str, Any]:
    """When each key of the endpoint, or any token, last authorized a request; null if it
    never did."""
    record = here.store.get_endpoint(name)
    used = {use.key: use.at for use in here.key_uses.newest(record.name)}
    keys = ("primary", "secondary") if record.document.get("auth_mode", "key") == "key" else (TOKEN,)
    return {"value": [{"key": key, "lastUsedTime": _time(used[key]) if key in used else None} for key in keys]}


def _time(at: int) -> str:
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
