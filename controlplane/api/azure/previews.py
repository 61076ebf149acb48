"""The effect of a PUT without applying it: ``?dryRun=true``.

Decides the response: ``{"change", "reasons", "resource"}``, where ``resource`` is what a GET would
return afterwards. Must not know validation: the caller has already refused invalid documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from amphitrite.controlplane.api.azure import resource_bodies
from amphitrite.controlplane.core.observed.status import Ref, Status
from amphitrite.controlplane.core.planning.preview import preview, replacing_fields
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.state.store import Record
from amphitrite.schemas.names import key

#: The query parameter of a PUT.
DryRun = Annotated[bool, Query(alias="dryRun")]


def endpoint(
    request: Request, here: Services, name: str, former: Record | None, document: Mapping[str, Any]
) -> Response:
    """The response for an endpoint."""
    record = _record(here, Ref(key(name)), name, former, document)
    return _answer(former, document, frozenset(), resource_bodies.endpoint(request, record, here))


def deployment(
    request: Request,
    here: Services,
    endpoint: str,
    former: Record | None,
    document: Mapping[str, Any],
    *,
    on_cluster: bool,
) -> Response:
    """The response for a deployment of ``endpoint``."""
    name = str(document["name"])
    record = _record(here, Ref(key(endpoint), key(name)), name, former, document)
    resource = resource_bodies.deployment(request, record, endpoint, here)
    return _answer(former, document, replacing_fields(on_cluster=on_cluster), resource)


def _record(here: Services, ref: Ref, name: str, former: Record | None, document: Mapping[str, Any]) -> Record:
    if former is not None:
        return replace(former, document=document)
    now, status = here.clock(), Status("Creating", 0, "", "")
    return Record(ref, name, document, "", 0, now, now, False, status)


def _answer(
    former: Record | None, document: Mapping[str, Any], replacing: frozenset[str], resource: Mapping[str, Any]
) -> Response:
    stored = None if former is None else former.document
    failed = former is not None and former.status.state == "Failed"
    result = preview(stored, document, failed=failed, replacing=replacing)
    return JSONResponse({"change": result.change, "reasons": list(result.reasons), "resource": resource})
