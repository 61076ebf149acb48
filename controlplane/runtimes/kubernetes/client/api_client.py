"""The cluster's API server: paths and JSON in, JSON out, refusals as our Error.

Decides how one reaches it, how long an answer may take, and which Error each refusal is. The only module that imports
the official client library, which brings the ways to log in. Must not know what is asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from urllib3.exceptions import HTTPError

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

#: Connecting, and waiting for an answer (seconds).
TIMEOUT_S = (3.0, 15.0)
#: The API server says something on each watch about once a minute (a bookmark); longer silence: a dead connection.
SILENCE_S = 150.0
#: When the API server is asked to end a watch by itself, so that its load spreads.
WATCH_S = 600

Patch = Literal["merge", "apply"]
_PATCH_TYPES: Mapping[Patch, str] = {
    "merge": "application/merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_DENIED = re.compile(r'cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"')
_NO_NAMESPACE = re.compile(r'namespaces "(?P<name>[^"]+)" not found')


def in_cluster() -> official.ApiClient:
    """As the service account of the pod that we are. Raises Error("KubernetesUnaccessible")."""
    configuration = official.Configuration()
    try:
        login.load_incluster_config(client_configuration=configuration)
    except ConfigException as exc:
        raise Error("KubernetesUnaccessible", f"not in a cluster: {exc}", hint="give a kubeconfig") from exc
    return _client(configuration)


def from_file(path: Path) -> official.ApiClient:
    """As an operator's kubeconfig says, whatever it says. Raises Error("KubernetesUnaccessible")."""
    configuration = official.Configuration()
    try:
        login.load_kube_config(config_file=str(path), client_configuration=configuration)
    except (ConfigException, OSError, yaml.YAMLError) as exc:
        message = f"the kubeconfig {path} is of no use: {exc}"
        raise Error("KubernetesUnaccessible", message, target="kubeconfig") from exc
    return _client(configuration)


def from_text(text: str) -> official.ApiClient:
    """As a kubeconfig that a user has handed in. Raises Error("BadArgument") also for one that names programs or files:
    those would be ours."""
    configuration = official.Configuration()
    try:
        value = yaml.safe_load(text)
        _check(value)
        login.load_kube_config_from_dict(value, client_configuration=configuration)
    except (ConfigException, yaml.YAMLError, KeyError, TypeError, AttributeError, ValueError) as exc:
        # What such a text holds is a secret, so no part of it is told.
        message = f"the kubeconfig is of no use ({type(exc).__name__})"
        raise Error("BadArgument", message, target="kubeconfig", hint="kubectl config view --minify --raw") from exc
    return _client(configuration)


_FILES = {"tokenFile", "client-certificate", "client-key", "certificate-authority"}


def _check(value: Mapping[str, Any]) -> None:
    for part, field in (("users", "user"), ("clusters", "cluster")):
        for one in value.get(part) or ():
            found = one.get(field) or {}
            if named := sorted(_FILES & found.keys()):
                message = f"the kubeconfig names a file ({named[0]}), which only its owner has"
                raise Error("BadArgument", message, target="kubeconfig", hint="kubectl config view --minify --raw")
            if programs := sorted({"exec", "auth-provider"} & found.keys()):
                message = f"the kubeconfig starts a program ({programs[0]}), which the control plane does not do"
                hint = "use a service account's token: kubectl create token NAME --duration=8760h"
                raise Error("BadArgument", message, target="kubeconfig", hint=hint)


def _client(configuration: official.Configuration) -> official.ApiClient:
    configuration.retries = False
    configuration.connection_pool_maxsize = 16
    return official.ApiClient(configuration)


class Cluster:
    """One API server. Every method raises Error: ``KubernetesUnaccessible``, ``NamespaceNotFound``, ``OutOfQuota``,
    ``InvalidDeploymentSpec``, and, as facts to act on, ``ResourceNotFound`` and ``Conflict``. For use by any thread."""

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
        """``apply`` is server-side apply; ``force``: take fields over from other managers."""
        query = {"fieldManager": field_manager, **({"force": "true"} if force else {})}
        return self._json("PATCH", path, query, body, _PATCH_TYPES[kind])

    def delete(self, path: str, preconditions: Mapping[str, str] | None = None) -> None:
        """With everything it owns, in the background. What is gone already is no error."""
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
        settings = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": WATCH_S, **query}
        return Stream(self._open("GET", path, settings, None, None, (TIMEOUT_S[0], SILENCE_S)), path)

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
            raise refusal(exc.status, exc.reason, exc.body, method, path) from exc
        except (HTTPError, OSError) as exc:
            raise self._unreachable(exc) from exc

    def _unreachable(self, exc: Exception) -> Error:
        why = str(getattr(exc, "reason", None) or exc)
        return Error(
            "KubernetesUnaccessible",
            f"no answer from the cluster at {self.address}: {why}",
            target=self.address,
            hint="what runs there goes on; see that the API server can be reached from here",
        )


class Stream:
    """One watch: (type, object) of each event until it ends; ``close`` from any thread ends it."""

    def __init__(self, response: Any, path: str) -> None:
        self._response, self._path = response, path

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Raises Error as ``Cluster`` does; ``ResourceNotFound`` where the history has been thrown away (410)."""
        try:
            for line in self._response:
                if line.strip():
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        told = event["object"]
                        raise refusal(told.get("code"), told.get("reason"), json.dumps(told), "GET", self._path)
                    yield event["type"], event["object"]
        except (HTTPError, OSError, ValueError, AttributeError) as exc:
            # AttributeError: what urllib3 does when somebody has closed it meanwhile.
            raise Error("KubernetesUnaccessible", f"the watch of {self._path} broke off: {exc}") from exc
        finally:
            self._response.close()

    def close(self) -> None:
        shutdown = getattr(self._response, "shutdown", None)
        (shutdown or self._response.close)()


def refusal(status: int | None, reason: str | None, body: Any, method: str, path: str) -> Error:
    """What the API server's answer means. Its own words are in ``message`` of a Status object."""
    words = _words(body) or str(reason)
    if named := _NO_NAMESPACE.search(words):
        hint = f"kubectl create namespace {named['name']}, or name another one"
        return Error("NamespaceNotFound", f"the cluster has no namespace {named['name']}", target=path, hint=hint)
    if status in (404, 410):
        return Error("ResourceNotFound", words, target=path)
    if status == 409:
        return Error("Conflict", words, target=path)
    if status == 403 and (denied := _DENIED.search(words)):
        resource = denied["resource"] + (f".{denied['group']}" if denied["group"] else "")
        message = f"the cluster does not let the control plane {denied['verb']} {resource}: {words}"
        hint = f"give its Role the verb {denied['verb']} on {resource}"
        return Error("KubernetesUnaccessible", message, target=path, hint=hint)
    if status == 403 and "exceeded quota" in words:
        return Error("OutOfQuota", words, target=path, hint="free some of it, or ask for a larger ResourceQuota")
    if status == 401:
        hint = "its token or certificate may have run out: attach the compute again"
        return Error("KubernetesUnaccessible", f"the cluster does not know who we are: {words}", target=path, hint=hint)
    if status in (400, 403, 422):
        return Error("InvalidDeploymentSpec", f"the cluster refuses it: {words}", target=path)
    return Error("KubernetesUnaccessible", f"the cluster failed: {method} {path}: {status} {words}", target=path)


def _words(body: Any) -> str:
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body or "")
    try:
        value = json.loads(text)
    except ValueError:
        return text.strip()[:500]
    return str(value.get("message") or "") if isinstance(value, dict) else text
