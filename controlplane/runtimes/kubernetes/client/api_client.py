"""A client of the API server: takes paths and JSON, returns JSON, and raises our Error.

Decides authentication, timeouts, and the Error for each status. It is the only module that imports
the official client library, for its ways to authenticate. Must not know what is requested.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from urllib3.exceptions import HTTPError

from amphitrite.schemas import bounded_yaml
from amphitrite.schemas.errors import Error

try:
    from kubernetes import client as official
    from kubernetes import config as login
    from kubernetes.client.exceptions import ApiException
    from kubernetes.config.config_exception import ConfigException
except ImportError as exc:
    raise Error(
        "RuntimeUnavailable",
        "the Kubernetes client is not installed",
        hint="in a checkout of amphitrite: pip install '.[cluster]'",
    ) from exc

#: Timeouts for connecting and for an answer, in seconds.
TIMEOUT_S = (3.0, 15.0)
#: The API server sends a bookmark on each watch about once a minute, so longer silence (seconds)
#: means a dead connection.
WATCH_READ_TIMEOUT_S = 150.0
#: Seconds after which the API server ends a watch, which spreads its load.
WATCH_TIMEOUT_S = 600

Patch = Literal["merge", "apply"]
_PATCH_TYPES: Mapping[Patch, str] = {
    "merge": "application/merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_DENIED = re.compile(r'cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"')
_NO_NAMESPACE = re.compile(r'namespaces "(?P<name>[^"]+)" not found')


def in_cluster() -> official.ApiClient:
    """A client with the service account of this pod. Raises Error("KubernetesUnaccessible")."""
    configuration = official.Configuration()
    try:
        login.load_incluster_config(client_configuration=configuration)
    except ConfigException as exc:
        raise Error(
            "KubernetesUnaccessible", f"this process does not run in a cluster: {exc}", hint="set a kubeconfig"
        ) from exc
    return _client(configuration)


def from_file(path: Path) -> official.ApiClient:
    """A client with an operator's kubeconfig. Raises Error("KubernetesUnaccessible")."""
    configuration = official.Configuration()
    try:
        login.load_kube_config(config_file=str(path), client_configuration=configuration)
    except (ConfigException, OSError, yaml.YAMLError) as exc:
        message = f"the kubeconfig {path} cannot be used: {exc}"
        raise Error("KubernetesUnaccessible", message, target="kubeconfig") from exc
    return _client(configuration)


def from_text(text: str) -> official.ApiClient:
    """A client with a kubeconfig from a user.

    Raises Error("BadArgument"), also if it refers to programs or files, because those would be on
    our machine.
    """
    configuration = official.Configuration()
    try:
        value = bounded_yaml.load(text)
        _check(value)
        login.load_kube_config_from_dict(value, client_configuration=configuration)
    except (ConfigException, yaml.YAMLError, KeyError, TypeError, AttributeError, ValueError) as exc:
        # The text is a secret, so the message contains no part of it.
        message = f"the kubeconfig cannot be used ({type(exc).__name__})"
        raise Error(
            "BadArgument",
            message,
            target="kubeconfig",
            hint="use the output of `kubectl config view --minify --raw --flatten`",
        ) from exc
    return _client(configuration)


_FILES = {"tokenFile", "client-certificate", "client-key", "certificate-authority"}


def _check(value: Mapping[str, Any]) -> None:
    for part, field in (("users", "user"), ("clusters", "cluster")):
        for one in value.get(part) or ():
            entry = one.get(field) or {}
            if named := sorted(_FILES & entry.keys()):
                message = f"the kubeconfig refers to a file ({named[0]}), which is not available here"
                raise Error(
                    "BadArgument",
                    message,
                    target="kubeconfig",
                    hint="use the output of `kubectl config view --minify --raw --flatten`",
                )
            if programs := sorted({"exec", "auth-provider"} & entry.keys()):
                message = f"the kubeconfig starts a program ({programs[0]}), which the control plane does not allow"
                hint = "use a token of a service account: kubectl create token NAME --duration=8760h"
                raise Error("BadArgument", message, target="kubeconfig", hint=hint)


def _client(configuration: official.Configuration) -> official.ApiClient:
    configuration.retries = False
    configuration.connection_pool_maxsize = 16
    return official.ApiClient(configuration)


class PermissionDenied(Error):
    """The Role of the control plane lacks a verb, for callers that can do without it."""


class Cluster:
    """One API server. Thread-safe.

    Every method raises Error ``KubernetesUnaccessible``, ``NamespaceNotFound``, ``OutOfQuota``,
    ``InvalidDeploymentSpec``, and for expected results ``ResourceNotFound`` and ``Conflict``.
    """

    def __init__(self, api: official.ApiClient) -> None:
        self._api = api

    @property
    def address(self) -> str:
        return str(self._api.configuration.host)

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        return self._json("GET", path, query)

    def text(self, path: str, **query: Any) -> str:
        return self._call("GET", path, query).decode("utf-8", "replace")

    def create(self, path: str, body: Mapping[str, Any], field_manager: str) -> dict[str, Any]:
        return self._json("POST", path, {"fieldManager": field_manager}, body)

    def patch(
        self, path: str, body: Mapping[str, Any], field_manager: str, kind: Patch = "merge", *, force: bool = False
    ) -> dict[str, Any]:
        """``apply``: server-side apply. ``force``: take fields over from other managers."""
        query = {"fieldManager": field_manager, **({"force": "true"} if force else {})}
        return self._json("PATCH", path, query, body, _PATCH_TYPES[kind])

    def delete(self, path: str, preconditions: Mapping[str, str] | None = None) -> None:
        """Deletes it and everything that it owns, in the background. A missing object is
        no error."""
        options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        if preconditions:
            options["preconditions"] = dict(preconditions)
        try:
            self._call("DELETE", path, {}, options)
        except Error as error:
            if error.code != "ResourceNotFound":
                raise

    def watch(self, path: str, **query: Any) -> Stream:
        """Events from ``resourceVersion`` on."""
        settings = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": WATCH_TIMEOUT_S, **query}
        return Stream(self._open("GET", path, settings, None, None, (TIMEOUT_S[0], WATCH_READ_TIMEOUT_S)), path)

    def close(self) -> None:
        self._api.rest_client.pool_manager.clear()

    def _json(
        self, method: str, path: str, query: Mapping[str, Any], body: Any = None, content_type: str | None = None
    ) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self._call(method, path, query, body, content_type))
        return value

    def _call(
        self, method: str, path: str, query: Mapping[str, Any], body: Any = None, content_type: str | None = None
    ) -> bytes:
        response = self._open(method, path, query, body, content_type, TIMEOUT_S)
        try:
            data: bytes = response.data
        except HTTPError as exc:
            raise self._unreachable(exc) from exc
        return data

    def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        body: Any,
        content_type: str | None,
        timeout_s: tuple[float, float],
    ) -> Any:
        headers = {"Accept": "application/json", "Content-Type": content_type or "application/json"}
        try:
            return self._api.call_api(
                path,
                method,
                query_params=list(query.items()),
                header_params=headers,
                body=body,
                auth_settings=["BearerToken"],
                _return_http_data_only=True,
                _preload_content=False,
                _request_timeout=timeout_s,
            )
        except ApiException as exc:
            raise error_for(exc.status, exc.reason, exc.body, method, path) from exc
        except (HTTPError, OSError) as exc:
            raise self._unreachable(exc) from exc

    def _unreachable(self, exc: Exception) -> Error:
        why = str(getattr(exc, "reason", None) or exc)
        return Error(
            "KubernetesUnaccessible",
            f"the cluster at {self.address} does not answer: {why}",
            target=self.address,
            hint="its instances keep running; check that the API server is reachable from the control plane",
        )


class Stream:
    """One watch: (type, object) of each event until it ends. ``close`` ends it from any thread."""

    def __init__(self, response: Any, path: str) -> None:
        self._response, self._path = response, path

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Raises Error as ``Cluster`` does, and ``ResourceNotFound`` if the history has been
        compacted (410)."""
        try:
            for line in self._response:
                if line.strip():
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        status = event["object"]
                        raise error_for(status.get("code"), status.get("reason"), json.dumps(status), "GET", self._path)
                    yield event["type"], event["object"]
        except (HTTPError, OSError, ValueError, AttributeError) as exc:
            # urllib3 raises AttributeError if another thread has closed the response.
            raise Error("KubernetesUnaccessible", f"the watch of {self._path} was interrupted: {exc}") from exc
        finally:
            self._response.close()

    def close(self) -> None:
        shutdown = getattr(self._response, "shutdown", None)
        (shutdown or self._response.close)()


def error_for(status: int | None, reason: str | None, body: Any, method: str, path: str) -> Error:
    """The Error for a status of the API server, whose own text is in ``message`` of a Status
    object."""
    words = _message(body) or str(reason)
    if named := _NO_NAMESPACE.search(words):
        hint = f"create it with `kubectl create namespace {named['name']}`, or use another namespace"
        return Error("NamespaceNotFound", f"the cluster has no namespace {named['name']}", target=path, hint=hint)
    if status in (404, 410):
        return Error("ResourceNotFound", words, target=path)
    if status == 409:
        return Error("Conflict", words, target=path)
    if status == 403 and (denied := _DENIED.search(words)):
        resource = denied["resource"] + (f".{denied['group']}" if denied["group"] else "")
        message = f"the cluster does not let the control plane {denied['verb']} {resource}: {words}"
        hint = f"add the verb {denied['verb']} on {resource} to its Role"
        return PermissionDenied("KubernetesUnaccessible", message, target=path, hint=hint)
    if status == 403 and "exceeded quota" in words:
        return Error("OutOfQuota", words, target=path, hint="free some of the quota, or request a larger ResourceQuota")
    if status == 401:
        hint = "its token or certificate may have expired: attach the compute again"
        return Error("KubernetesUnaccessible", f"the cluster rejects the credentials: {words}", target=path, hint=hint)
    if status in (400, 403, 422):
        return Error("InvalidDeploymentSpec", f"the cluster rejects the object: {words}", target=path)
    return Error(
        "KubernetesUnaccessible", f"a request to the cluster failed: {method} {path}: {status} {words}", target=path
    )


def _message(body: Any) -> str:
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body or "")
    try:
        value = json.loads(text)
    except ValueError:
        return text.strip()[:500]
    return str(value.get("message") or "") if isinstance(value, dict) else text
