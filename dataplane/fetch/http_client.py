"""HTTP for the fetcher, and what its failures mean.

Decides whom it trusts, that a grant never follows a redirect, and which failures may pass. Must not know files on the
disk.
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

from amphitrite.dataplane.fetch.fetch_failure import Problem

#: Seconds without a byte after which a connection counts as broken.
SOCKET_TIMEOUT_S = 20.0
#: What an address or grant that is no longer good is answered with (S3 says 403 to both).
REFUSED = (401, 403, 410)
_PASSING = (408, 425, 429)
_S3_MESSAGE = re.compile("<Message>([^<]{1,300})</Message>")

Answer = http.client.HTTPResponse


class Passing(Exception):
    """It may work the next time. The text is for people and names no address."""


class Refused(Exception):
    """``status`` is one of ``REFUSED``; the text is what the other side said."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status


class Web:
    """Thread-safe."""

    def __init__(self, ca: Path | None = None, proxy: str | None = None, timeout_s: float = SOCKET_TIMEOUT_S) -> None:
        """Raises Problem for a file of authorities that cannot be read."""
        context = ssl.create_default_context()
        if ca is not None:
            try:
                context.load_verify_locations(cafile=str(ca))
            except (OSError, ValueError) as exc:
                raise Problem(f"the authorities in {ca} cannot be read: {exc}") from exc
        proxies = {"http": proxy, "https": proxy} if proxy else {}
        handlers = (urllib.request.ProxyHandler(proxies), urllib.request.HTTPSHandler(context=context))
        self._timeout_s = timeout_s
        self._with_grant = urllib.request.build_opener(*handlers, _NoRedirect)
        self._without = urllib.request.build_opener(*handlers)

    def list_files(self, url: str, grant: str) -> bytes:
        """Raises Passing, Refused, Problem."""
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {grant}"})
        with self._open(self._with_grant, request) as answer:
            try:
                return answer.read()
            except (OSError, http.client.HTTPException) as exc:
                raise Passing(reason(exc)) from exc

    def open(self, url: str, first: int) -> tuple[Answer, int]:
        """A file from byte ``first`` on, or all of it if the server does not know ranges: (answer, its first byte).
        Raises Passing, Refused, Problem."""
        headers = {"Range": f"bytes={first}-"} if first else {}
        answer = self._open(self._without, urllib.request.Request(url, headers=headers))
        if answer.status != 206:
            return answer, 0
        if answer.headers.get("Content-Range", "").startswith(f"bytes {first}-"):
            return answer, first
        answer.close()
        raise Passing("the answer holds other bytes than were asked for")

    def _open(self, opener: urllib.request.OpenerDirector, request: urllib.request.Request) -> Answer:
        try:
            return cast(Answer, opener.open(request, timeout=self._timeout_s))
        except urllib.error.HTTPError as exc:
            with exc:
                said = _said(exc)
            if exc.code in REFUSED:
                raise Refused(exc.code, said) from None
            if exc.code in _PASSING or exc.code >= 500:
                raise Passing(said) from None
            raise Problem(f"{request.host} answers {said}") from None
        except (OSError, http.client.HTTPException) as exc:
            cause = exc.reason if isinstance(exc, urllib.error.URLError) else exc
            if isinstance(cause, ssl.SSLCertVerificationError):
                hint = "AMPHITRITE_FETCH_CA names the authorities that are trusted besides the system's"
                raise Problem(
                    f"the certificate of {request.host} is not accepted: {cause.verify_message}", hint
                ) from None
            raise Passing(f"{request.host}: {reason(cause)}") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The header with the grant would go along to wherever a redirect leads."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _said(answer: urllib.error.HTTPError) -> str:
    """``403: no deployment uses this model any more``, from a body in our own shape or in S3's."""
    message = answer.reason
    with suppress(ValueError, KeyError, TypeError, OSError, http.client.HTTPException):
        body = answer.read(64 * 1024).decode("utf-8", "replace")
        # Of an object store's answer only this element is meant for everybody.
        found = _S3_MESSAGE.search(body)
        message = found[1] if found else json.loads(body)["error"]["message"]
    return f"{answer.code}: {message}"


def reason(error: object) -> str:
    """An error's text where it cannot hold an address, else its kind."""
    return (str(error) if isinstance(error, OSError) else "") or type(error).__name__
