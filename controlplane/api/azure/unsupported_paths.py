"""Paths of Azure ML that this server does not offer: a clear answer instead of "there is nothing".

Decides what is said about each. Must not know what is offered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter

from amphitrite.controlplane.api.http.workspace_scope import IN_WORKSPACE, WORKSPACE
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import PROVIDER

#: kind of resource -> (what it is, what to do instead).
_ONLY = "models, environments and online endpoints live in this workspace"
_KINDS = {
    "data": ("data assets and data collection", "remove data_collector"),
    "featuresets": ("feature sets", _ONLY),
    "featurestoreEntities": ("feature store entities", _ONLY),
    "jobs": ("jobs", _ONLY),
    "schedules": ("schedules", _ONLY),
    "components": ("components", _ONLY),
    "batchEndpoints": ("batch endpoints", "use an online endpoint"),
    "serverlessEndpoints": ("serverless endpoints", "use an online endpoint"),
    "marketplaceSubscriptions": ("marketplace subscriptions", "use an online endpoint"),
    "connections": ("connections", _ONLY),
    "outboundRules": ("outbound rules", "network policies decide what instances may reach"),
    "labelingJobs": ("labeling jobs", _ONLY),
}
#: Verbs of what is offered that are not: (path, what it is, what to do instead).
_VERBS = (
    ("/models/{name}/versions/{version}/package", "model packages", "deploy the model as it is: Triton serves it"),
    ("/models/{name}/versions/{version}/startPendingUpload", "temporary uploads of models", "upload to the datastore"),
    ("/listKeys", "keys of the workspace", "clients send the control plane's bearer token"),
    ("/diagnose", "diagnosis of the workspace", "`ml server status` and `ml server logs` tell how it is"),
)
#: Registries stand beside workspaces, not in one; the second is where clients look for one by its name.
_REGISTRIES = (
    f"/subscriptions/{{subscription}}/resourceGroups/{{resource_group}}/providers/{PROVIDER}/registries/{{rest:path}}",
    "/registrymanagement/{rest:path}",
)
_METHODS = ["GET", "PUT", "POST", "PATCH", "DELETE", "HEAD"]

router = APIRouter(include_in_schema=False)


def _offer_nothing(paths: tuple[str, ...], target: str, what: str, instead: str, dependencies: Sequence[Any]) -> None:
    def refuse() -> None:
        raise Error("Unsupported", f"{what} are not offered by this server", target=target, hint=instead)

    for path in paths:
        router.add_api_route(path, refuse, methods=_METHODS, dependencies=dependencies)


for _kind, (_what, _instead) in _KINDS.items():
    _paths = f"{WORKSPACE}/{_kind}", f"{WORKSPACE}/{_kind}/{{rest:path}}"
    _offer_nothing(_paths, _kind, _what, _instead, IN_WORKSPACE)
for _path, _what, _instead in _VERBS:
    _offer_nothing((WORKSPACE + _path,), _path.split("/")[-1], _what, _instead, IN_WORKSPACE)
_offer_nothing(_REGISTRIES, "registries", "registries", "register the asset in the workspace", ())
