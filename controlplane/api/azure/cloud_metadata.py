"""This server described as a cloud: what Azure's clients ask for at ``ARM_CLOUD_METADATA_URL``.

Decides the document (2022-09-01). Says nothing that whoever asks does not know: its own address. Must not know tokens.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

#: The cloud's name. Those of Azure's own clouds are looked up elsewhere by clients.
NAME = "Amphitrite"
#: Ours are not below it: the account's name brings host and path along (``workspace``), and this is only appended.
STORAGE_SUFFIX = "core.windows.net"

router = APIRouter()


@router.get("/metadata/endpoints")
def endpoints(request: Request) -> list[dict[str, Any]]:
    """One cloud. Clients take it for theirs when ``resourceManager`` is part of the address that they asked, so it has
    that host and no final slash."""
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
