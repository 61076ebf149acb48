"""The fetcher's HTTP client, and what its failures mean.

Decides whom it trusts, that a grant never follows a redirect, and which failures may be transient.
Must not know files on the disk.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from amphitrite.dataplane.fetch.fetch_failure import FetchFailure

#: Seconds without a byte after which a connection counts as broken.
SOCKET_TIMEOUT_S = 20.0
#: The answers to an address or a grant that is no longer valid (S3 answers 403 to both).
REFUSAL_STATUSES = (401, 403, 410)
_TRANSIENT_STATUSES = (408, 425, 429)
_S3_MESSAGE = re.compile("<Message>([^<]{1,300})</Message>")

Response = http.client.HTTPResponse


class TransientFailure(Exception):
    """Another attempt may work. The text is for people and holds no address."""


class AccessRefused(Exception):
    """``status`` is one of ``REFUSAL_STATUSES``. The text is the other side's message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class HttpClient:
    """Thread-safe."""

    def __init__(self, ca: Path | None = None, proxy: str | None = None, timeout_s: float = SOCKET_TIMEOUT_S) -> None:
        """Raises FetchFailure for a file of authorities that cannot be read."""
        context = ssl.create_default_context()
        if ca is not None:
            try:
                context.load_verify_locations(cafile=str(ca))
            except (OSError, ValueError) as exc:
                raise FetchFailure(f"the authorities in {ca} cannot be read: {exc}") from exc
        proxies = {"http": proxy, "https": proxy} if proxy else {}
        handlers = (urllib.request.ProxyHandler(proxies), urllib.request.HTTPSHandler(context=context))
        self._timeout_s = timeout_s
        self._with_grant = urllib.request.build_opener(*handlers, _NoRedirect)
        self._without = urllib.request.build_opener(*handlers)

    def list_files(self, url: str, grant: str) -> bytes:
        """The control plane's list of files. Raises TransientFailure, AccessRefused or
        FetchFailure."""
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {grant}"})
        with self._open(self._with_grant, request) as response:
            try:
                return response.read()
            except (OSError, http.client.HTTPException) as exc:
                raise TransientFailure(reason(exc)) from exc

    def open(self, url: str, first: int) -> tuple[Response, int]:
        """A file from byte ``first`` on, or all of it if the server has no ranges: (response, its
        first byte). Raises TransientFailure, AccessRefused or FetchFailure. Source: RFC 9110,
        section 14."""
        headers = {"Range": f"bytes={first}-"} if first else {}
        response = self._open(self._without, urllib.request.Request(url, headers=headers))
        if response.status != 206:
            return response, 0
        if response.headers.get("Content-Range", "").startswith(f"bytes {first}-"):
            return response, first
        response.close()
        raise TransientFailure("the answer holds other bytes than the requested ones")

    def _open(self, opener: urllib.request.OpenerDirector, request: urllib.request.Request) -> Response:
        try:
            return cast(Response, opener.open(request, timeout=self._timeout_s))
        except urllib.error.HTTPError as exc:
            with exc:
                message = _response_message(exc)
            if exc.code in REFUSAL_STATUSES:
                raise AccessRefused(exc.code, message) from None
            if exc.code in _TRANSIENT_STATUSES or exc.code >= 500:
                raise TransientFailure(message) from None
            raise FetchFailure(f"{request.host} answers {message}") from None
        except (OSError, http.client.HTTPException) as exc:
            cause = exc.reason if isinstance(exc, urllib.error.URLError) else exc
            if isinstance(cause, ssl.SSLCertVerificationError):
                hint = "AMPHITRITE_FETCH_CA names the authorities that are trusted besides the system's"
                raise FetchFailure(
                    f"the certificate of {request.host} is not accepted: {cause.verify_message}", hint
                ) from None
            raise TransientFailure(f"{request.host}: {reason(cause)}") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The header with the grant would be sent to wherever a redirect leads."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _response_message(response: urllib.error.HTTPError) -> str:
    """``403: no deployment uses this model any more``, from a body in our own form or in S3's."""
    message = response.reason
    with suppress(ValueError, KeyError, TypeError, OSError, http.client.HTTPException):
        body = response.read(64 * 1024).decode("utf-8", "replace")
        # Only this element of an object store's answer is meant for everybody.
        s3_message = _S3_MESSAGE.search(body)
        message = s3_message[1] if s3_message else json.loads(body)["error"]["message"]
    return f"{response.code}: {message}"


def reason(error: object) -> str:
    """The text of an error that cannot hold an address, else its type."""
    return (str(error) if isinstance(error, OSError) else "") or type(error).__name__
