"""Azure ML paths that this server does not support: a clear error instead of a missing path.

Decides the error for each. Must not know what is supported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter

from amphitrite.controlplane.api.http.workspace_scope import IN_WORKSPACE, WORKSPACE
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import PROVIDER

#: Kind of resource -> (what it is, what to do instead).
_ONLY = "this workspace supports models, environments and online endpoints"
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
    "outboundRules": ("outbound rules", "use network policies of the cluster"),
    "labelingJobs": ("labeling jobs", _ONLY),
}
#: Unsupported operations on supported resources: (path, what it is, what to do instead).
_VERBS = (
    (
        "/models/{name}/versions/{version}/package",
        "model packages",
        "deploy the model without a package: Triton serves it",
    ),
    ("/models/{name}/versions/{version}/startPendingUpload", "temporary uploads of models", "upload to the datastore"),
    ("/listKeys", "keys of the workspace", "use the control plane's bearer token"),
    ("/diagnose", "diagnosis of the workspace", "use `ml server status` and `ml server logs`"),
)
#: Registries are not part of a workspace. Clients look up a registry by name at the second path.
_REGISTRIES = (
    f"/subscriptions/{{subscription}}/resourceGroups/{{resource_group}}/providers/{PROVIDER}/registries/{{rest:path}}",
    "/registrymanagement/{rest:path}",
)
_METHODS = ["GET", "PUT", "POST", "PATCH", "DELETE", "HEAD"]

router = APIRouter(include_in_schema=False)


def _add_refusals(paths: tuple[str, ...], target: str, what: str, hint: str, dependencies: Sequence[Any]) -> None:
    def refuse() -> None:
        raise Error("Unsupported", f"this server does not support {what}", target=target, hint=hint)

    for path in paths:
        router.add_api_route(path, refuse, methods=_METHODS, dependencies=dependencies)


for _kind, (_what, _hint) in _KINDS.items():
    _paths = f"{WORKSPACE}/{_kind}", f"{WORKSPACE}/{_kind}/{{rest:path}}"
    _add_refusals(_paths, _kind, _what, _hint, IN_WORKSPACE)
for _path, _what, _hint in _VERBS:
    _add_refusals((WORKSPACE + _path,), _path.split("/")[-1], _what, _hint, IN_WORKSPACE)
_add_refusals(_REGISTRIES, "registries", "registries", "register the asset in the workspace", ())
