"""Names from the control plane for a shell that waits: at once, or not at all.

Decides the time limit, and that whatever goes wrong means no names. Must not know shells or
options. It uses the standard library's client, which is imported in a fifth of the time.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from amphitrite.cli.session import connection
from amphitrite.cli.terminal.options import Options, scope
from amphitrite.schemas.names import compute_id, deployment_id, endpoint_id, environment_id, model_id, workspace_id

#: Seconds for all requests together, unless the variable says otherwise.
LIMIT_S, _VARIABLE = 0.3, "ML_COMPLETION_TIMEOUT_S"
_PAGE = "?api-version=2023-04-01-preview&%24top=1000"


class Named(NamedTuple):
    """A name, and a few words about it."""

    name: str
    meaning: str = ""


class QuickNames:
    """The resources of one workspace. Every method returns nothing when the server is not quick."""

    def __init__(self, options: Options, environ: Mapping[str, str] = os.environ) -> None:
        """Raises ValueError if the variable is no number."""
        self._options = options
        self._end = time.monotonic() + float(environ.get(_VARIABLE) or LIMIT_S)

    def endpoints(self) -> list[Named]:
        return [Named(one["name"], _state(one)) for one in self._list(f"{self._workspace}/onlineEndpoints")]

    def deployments(self, endpoint: str) -> list[Named]:
        path = deployment_id(self._workspace, quote(endpoint), "").rstrip("/")
        return [Named(one["name"], _state(one)) for one in self._list(path)]

    def models(self) -> list[Named]:
        return [Named(one["name"], _latest(one)) for one in self._list(f"{self._workspace}/models")]

    def model_versions(self, name: str) -> list[Named]:
        path = f"{model_id(self._workspace, quote(name))}/versions"
        return [Named(one["name"], one["properties"].get("description") or "") for one in self._list(path)]

    def environments(self) -> list[Named]:
        return [Named(one["name"], _latest(one)) for one in self._list(f"{self._workspace}/environments")]

    def environment_versions(self, name: str) -> list[Named]:
        path = f"{environment_id(self._workspace, quote(name))}/versions"
        return [Named(one["name"], one["properties"].get("image") or "") for one in self._list(path)]

    def computes(self) -> list[Named]:
        return [Named(one["name"], one["properties"]["computeType"]) for one in self._computes()]

    def instance_types(self, endpoint: str | None) -> list[Named]:
        """Those of the compute that the endpoint names, else of the built-in one."""
        found = None
        if endpoint is not None:
            found = self._get(f"{endpoint_id(self._workspace, quote(endpoint))}{_PAGE}")
        compute = ((found or {}).get("properties") or {}).get("compute")
        if compute is None:
            names = [one["name"] for one in self._computes() if not one["properties"]["isAttachedCompute"]]
            compute = names[0] if names else "local"
        path = f"{compute_id(self._workspace, str(compute).rpartition('/')[2])}/vmSizes"
        return [Named(one["name"], _size(one)) for one in self._list(path)]

    # -- requests ----------------------------------------------------------------------------------
    @property
    def _workspace(self) -> str:
        names = scope(self._options)
        return quote(workspace_id(names.subscription, names.resource_group, names.workspace))

    def _computes(self) -> list[dict[str, Any]]:
        return self._list(f"{self._workspace}/computes")

    def _list(self, path: str) -> list[dict[str, Any]]:
        return list((self._get(f"{path}{_PAGE}") or {}).get("value", ()))

    def _get(self, path: str) -> dict[str, Any] | None:
        left = self._end - time.monotonic()
        if left <= 0:
            return None
        server = connection.find_server(self._options.server_url)
        import http.client

        address = urlsplit(server.url)
        client = http.client.HTTPSConnection(
            address.hostname or "", address.port, timeout=left, context=connection.ssl_context(server)
        )
        try:
            client.request("GET", path, headers={"Authorization": f"Bearer {server.token}"} if server.token else {})
            answer = client.getresponse()
            body = json.loads(answer.read())
            return body if answer.status == 200 and isinstance(body, dict) else None
        finally:
            client.close()


def _state(resource: dict[str, Any]) -> str:
    return str(resource["properties"].get("provisioningState", ""))


def _latest(resource: dict[str, Any]) -> str:
    return f"latest version {resource['properties'].get('latestVersion')}"


def _size(size: dict[str, Any]) -> str:
    gpus = f", {size['gpus']} GPU" if size.get("gpus") else ""
    return f"{size.get('vCPUs', '')} CPU, {size.get('memoryGB', '')} GB{gpus}"
