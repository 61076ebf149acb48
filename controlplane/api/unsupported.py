"""Workspace paths of Azure ML that this server does not offer: a clear answer instead of "there is nothing".

Decides what is said about each. Must not know what is offered.
"""

from __future__ import annotations

from fastapi import APIRouter

from amphitrite.controlplane.api.workspace import IN_WORKSPACE, WORKSPACE
from amphitrite.schemas.errors import Error

#: kind of resource -> (what it is, what to do instead).
_KINDS = {
    "environments": ("environments (custom containers)", "remove environment: Triton serves a triton_model by itself"),
    "codes": ("scoring scripts", "remove code_configuration: Triton serves a triton_model by itself"),
    "data": ("data assets and data collection", "remove data_collector"),
    "jobs": ("jobs", "only models and online endpoints live in this workspace"),
    "components": ("components", "only models and online endpoints live in this workspace"),
    "batchEndpoints": ("batch endpoints", "use an online endpoint"),
}
_METHODS = ["GET", "PUT", "POST", "PATCH", "DELETE", "HEAD"]

router = APIRouter(prefix=WORKSPACE, dependencies=IN_WORKSPACE)


def _refuse(kind: str) -> None:
    what, instead = _KINDS[kind]
    raise Error("Unsupported", f"{what} are not offered by this server", target=kind, hint=instead)


def _offer_nothing(kind: str) -> None:
    def refuse() -> None:
        _refuse(kind)

    for path in (f"/{kind}", f"/{kind}/{{rest:path}}"):
        router.add_api_route(path, refuse, methods=_METHODS)


for _kind in _KINDS:
    _offer_nothing(_kind)
