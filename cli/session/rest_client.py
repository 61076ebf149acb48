"""A client for the control plane's REST API.

Decides how a request is sent and retried, and how failures become Errors: a response that is not a
success becomes the Error in its body, a failed connection becomes Error ServerUnreachable. Must not
know documents. Takes any ``httpx.Client``.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

import httpx

from amphitrite.cli.terminal.options import Scope
from amphitrite.cli.terminal.request_trace import Trace
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import workspace_id

API_VERSION = "2023-04-01-preview"
#: Items of a list in one response: the maximum of the server.
_PAGE = "1000"
#: Seconds before each retry of a GET after a lost connection.
_RETRY_PAUSES_S = (0.1, 0.3)


class Client:
    """One connection to one control plane, for one workspace."""

    def __init__(
        self, http: httpx.Client, scope: Scope, *, trace: Trace | None = None, unreachable_hint: str | None = None
    ) -> None:
        self.scope = scope
        #: ARM id of the workspace. The path of every resource begins with it.
        self.workspace = workspace_id(scope.subscription, scope.resource_group, scope.workspace)
        self._http = http
        self._trace = trace or Trace(lines=False, bodies=False)
        self._hint = unreachable_hint
        self._date: str | None = None
        #: Why something is changed, for its history.
        self.reason = ""

    @property
    def server_time(self) -> float:
        """The server's time of its last response, in seconds since the epoch; without one this
        machine's. Ages are right even if the two clocks differ."""
        try:
            return parsedate_to_datetime(self._date or "").timestamp()
        except ValueError:
            return time.time()

    # -- resources ---------------------------------------------------------------------------------
    def get(self, path: str, **params: str) -> dict[str, Any]:
        """The resource at ``path``. Raises Error ResourceNotFound."""
        body: dict[str, Any] = self.send("GET", path, params=params).json()
        return body

    def find(self, path: str) -> dict[str, Any] | None:
        """The resource at ``path``; None if it does not exist."""
        try:
            return self.get(path)
        except Error as error:
            if error.code == "ResourceNotFound":
                return None
            raise

    def list_all(self, path: str, **params: str) -> list[dict[str, Any]]:
        """All items of a list, from all its pages."""
        body = self.get(path, **{"$top": _PAGE, **params})
        items = list(body["value"])
        while body.get("nextLink"):
            body = self.send("GET", path_and_query(body["nextLink"])).json()
            items += body["value"]
        return items

    # -- requests ----------------------------------------------------------------------------------
    def send(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        json: Any = None,
        content: bytes | Iterable[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send one request and return its successful response.

        Raises Error for any other response.
        """
        response = self.exchange(method, url, params=params, json=json, content=content, headers=headers)
        if response.is_success:
            return response
        raise _error_from_response(response)

    def exchange_json(
        self, method: str, url: str, *, params: Mapping[str, str] | None = None, timeout_s: float
    ) -> dict[str, Any]:
        """The JSON object in the successful response to a request that may take ``timeout_s``.

        Raises Error.
        """
        response = self.exchange(method, url, params=params, timeout_s=timeout_s)
        if not response.is_success:
            raise _error_from_response(response)
        body: dict[str, Any] = response.json()
        return body

    def exchange(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        json: Any = None,
        content: bytes | Iterable[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> httpx.Response:
        """Send one request and return its response, whatever its status.

        Raises Error ServerUnreachable.
        """
        if self.reason and method != "GET":
            headers = {**(headers or {}), "Amphitrite-Reason": quote(self.reason)}
        request = self._http.build_request(
            method,
            self._address(url, params),
            json=json,
            content=content,
            headers=headers,
            timeout=timeout_s or self._http.timeout,
        )
        pauses = iter(_RETRY_PAUSES_S if method in ("GET", "HEAD") else ())
        while True:
            began = time.monotonic()
            try:
                response = self._http.send(request)
            except httpx.TransportError as exc:
                # A server that did not answer in time is busy: an immediate retry would not help.
                pause = None if isinstance(exc, httpx.TimeoutException) else next(pauses, None)
                if pause is None:
                    raise self._unreachable(request, exc) from exc
                time.sleep(pause)
            else:
                self._date = response.headers.get("date")
                self._trace.print_exchange(request, response, time.monotonic() - began)
                return response

    def _address(self, url: str, params: Mapping[str, str] | None) -> httpx.URL:
        address = self._http.base_url.join(url)
        if url.startswith("/subscriptions/") and "api-version" not in address.params:
            address = address.copy_merge_params({"api-version": API_VERSION})
        return address.copy_merge_params(params) if params else address

    def _unreachable(self, request: httpx.Request, exc: httpx.TransportError) -> Error:
        url = str(request.url.copy_with(raw_path=b"/")).rstrip("/")
        reason = str(exc)
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            message = f"the certificate of {url} is not trusted: {reason}"
            return Error(
                "ServerUnreachable",
                message,
                target=url,
                hint="set SSL_CERT_FILE or ML_CA_FILE to a file with the certificate authority",
            )
        if isinstance(exc, httpx.TimeoutException):
            return Error("ServerUnreachable", f"the control plane at {url} did not answer in time", target=url)
        return Error("ServerUnreachable", f"no control plane at {url}", target=url, hint=self._hint)


def path_and_query(url: str) -> str:
    """The path and query of a URL in a response: requests keep going to the same host."""
    return httpx.URL(url).raw_path.decode()


def _error_from_response(response: httpx.Response) -> Error:
    try:
        body = response.json()["error"]
        error = Error.from_body(body)
    except (ValueError, KeyError, TypeError, AttributeError):
        text = " ".join(response.text.split())[:500]
        error = Error("InternalServerError", f"HTTP {response.status_code} from {response.request.url}: {text}")
    if error.code == "AuthenticationFailed" and not error.hint:
        return Error(error.code, error.message, target=error.target, hint="set ML_TOKEN to a valid token")
    return error
