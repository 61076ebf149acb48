"""Long-running operations, with the headers that Azure's SDK polls (Azure Resource Manager's page
"Track asynchronous Azure operations").

Decides the headers that start polling, the status body and when polling ends. Must not know what an
operation does.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from amphitrite.controlplane.api.azure import operation_addresses, resource_bodies
from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.state.store import Operation, Record
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import PROVIDER, deployment_id, endpoint_id, key

#: Seconds between polls. Without the header the SDK waits 5 or 30 s.
RETRY_AFTER = "1"
#: The progress of an operation after so many phases; 100 only at its end.
_PERCENT_PER_PHASE, _PERCENT_MAX = 20, 95

router = APIRouter(prefix=f"/subscriptions/{{subscription}}/providers/{PROVIDER}/locations/{{location}}")


def changed(request: Request, here: Services, record: Record, operation: Operation, body: dict[str, Any]) -> Response:
    """The response to a PUT: 201 for a new resource, otherwise 200, with the resource and the
    polling URLs."""
    status = 201 if operation.verb == "create" else 200
    return JSONResponse(body, status, {"ETag": record.etag, **_headers(request, here, operation)})


def accepted(request: Request, here: Services, operation: Operation | None) -> Response:
    """The response to a DELETE or POST: 202 and the polling URLs, or 204 if there was nothing to
    do."""
    if operation is None:
        return Response(status_code=204)
    return Response(status_code=202, headers=_headers(request, here, operation))


@router.get("/mfeOperationsStatus/{operation_id}")
def status(request: Request, here: Here, subscription: str, operation_id: str) -> Response:
    """The progress of an operation. The SDK polls this until the status is final."""
    operation = _find(here, subscription, operation_id)
    headers = {"Retry-After": RETRY_AFTER} if operation.status == "InProgress" else {}
    return JSONResponse(_body(here, operation), headers=headers)


@router.get("/mfeOperationResults/{operation_id}")
def result(request: Request, here: Here, subscription: str, operation_id: str) -> Response:
    """The result of an operation: 202 until it has ended, then the resource, 204 if there is none,
    or the error."""
    operation = _find(here, subscription, operation_id)
    if operation.status == "InProgress":
        return Response(status_code=202, headers=_headers(request, here, operation))
    if error := _error(operation):
        raise error
    if operation.verb in ("delete", "regenerateKeys"):
        return Response(status_code=204)
    ref = operation.ref
    if ref.deployment is None:
        return JSONResponse(resource_bodies.endpoint(request, here.store.get_endpoint(ref.endpoint), here))
    parent = here.store.get_endpoint(ref.endpoint)
    record = here.store.get_deployment(ref.endpoint, ref.deployment)
    return JSONResponse(resource_bodies.deployment(request, record, parent.name, here))


def _find(here: Services, subscription: str, operation_id: str) -> Operation:
    if key(subscription) != key(here.settings.subscription):
        raise Error("ResourceNotFound", f"the subscription {subscription} does not exist", target=subscription)
    return here.store.get_operation(operation_id)


def _body(here: Services, operation: Operation) -> dict[str, Any]:
    ref = operation.ref
    place = endpoint_id(here.workspace, ref.endpoint)
    done = min(_PERCENT_MAX, _PERCENT_PER_PHASE * len(operation.phases))
    body: dict[str, Any] = {
        "id": operation.id,
        "name": operation.id,
        "status": operation.status,
        "startTime": resource_bodies.timestamp(operation.started_at),
        "percentComplete": done if operation.status == "InProgress" else 100,
        "resourceId": place if ref.deployment is None else deployment_id(here.workspace, ref.endpoint, ref.deployment),
        "properties": {
            "verb": operation.verb,
            "phases": [
                {"name": name, "message": message, "startTime": resource_bodies.timestamp(at)}
                for name, message, at in operation.phases
            ],
        },
    }
    if operation.ended_at is not None:
        body["endTime"] = resource_bodies.timestamp(operation.ended_at)
    if error := _error(operation):
        body["error"] = error.to_body()
    return body


def _error(operation: Operation) -> Error | None:
    """Why the operation did not succeed. A "Canceled" operation needs a message too."""
    if operation.error is None and operation.status == "Canceled":
        return Error("OperationCanceled", f"the {operation.verb} was canceled by a deletion", target=operation.id)
    return operation.error


def _headers(request: Request, here: Services, operation: Operation) -> dict[str, str]:
    return {
        "Azure-AsyncOperation": operation_addresses.status(request, here, operation.id),
        "Location": operation_addresses.result(request, here, operation.id),
        "Retry-After": RETRY_AFTER,
    }
