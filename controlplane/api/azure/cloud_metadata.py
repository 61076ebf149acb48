"""This server described as a cloud, for clients with ``ARM_CLOUD_METADATA_URL``.

Decides the document (``/metadata/endpoints``, api-version 2022-09-01). It needs no token and
reveals only the URL that the client used. Must not know tokens.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

#: The cloud's name. Clients look up the names of Azure's own clouds elsewhere.
NAME = "Amphitrite"
#: Clients only append this suffix: the account's name already contains host and path
#: (``workspace``).
STORAGE_SUFFIX = "core.windows.net"

router = APIRouter()


@router.get("/metadata/endpoints")
def endpoints(request: Request) -> list[dict[str, Any]]:
    """One cloud. Clients select it if ``resourceManager`` is part of the URL that they requested,
    so it has the same host and no final slash."""
    base = f"https://{request.url.netloc}"
    return [
        {
            "name": NAME,
            "portal": f"{base}/",
            "resourceManager": base,
            "authentication": {"loginEndpoint": base, "audiences": [base]},
            "suffixes": {"storage": STORAGE_SUFFIX},
        }
    ]
