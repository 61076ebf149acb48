"""The addresses at which clients ask for the progress and the result of an operation.

Decides their form (Azure Resource Manager's page "Track asynchronous Azure operations") and the id
of a resource's newest operation. Must not know what an operation does.
"""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request

from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.state.store import Record, operation_alias
from amphitrite.schemas.names import PROVIDER


def status(request: Request, here: Services, operation_id: str) -> str:
    """Where the progress is: the header ``Azure-AsyncOperation``."""
    return _address(request, here, "mfeOperationsStatus", operation_id)


def result(request: Request, here: Services, operation_id: str) -> str:
    """Where the result is: the header ``Location``."""
    return _address(request, here, "mfeOperationResults", operation_id)


def newest(request: Request, here: Services, record: Record) -> str:
    """Where the progress of the last change of a resource is, which Azure ML also puts into the
    resource."""
    return status(request, here, operation_alias(record.ref, record.generation))


def _address(request: Request, here: Services, kind: str, operation_id: str) -> str:
    """An absolute URL with the host and ``api-version`` that the client used."""
    settings, base = here.settings, str(request.base_url).rstrip("/")
    place = f"{base}/subscriptions/{quote(settings.subscription)}/providers/{PROVIDER}/locations/{settings.location}"
    version = request.query_params.get("api-version")
    query = f"?api-version={quote(version)}" if version is not None else ""
    return f"{place}/{kind}/{operation_id}{query}"
