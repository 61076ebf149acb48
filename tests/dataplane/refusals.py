"""What the proxy itself answers, read from the form that the path of the request asks for."""

from __future__ import annotations

import json
import posixpath
import re
from typing import Any
from urllib.parse import unquote

import httpx

_BELOW = re.compile(r"(/endpoints/[^/]+)?/v2([/?].*)?")
_TEXT = re.compile(r"(?s)([A-Za-z]+): (.*) \(request id ([0-9a-f-]{36})\)")


def code_and_message(answer: httpx.Response, path: str | None = None) -> tuple[str, str]:
    """``path``: as it was sent, where that is not the URL's. Fails unless the body has the form
    for it: below ``/v2`` Triton's, with the id that the header has too; elsewhere Azure's."""
    return parsed(answer.text, path or answer.request.url.path, answer.headers["x-request-id"])


def parsed(body: str, path: str, request_id: str) -> tuple[str, str]:
    value: dict[str, Any] = json.loads(body)
    assert list(value) == ["error"]
    error = value["error"]
    if _BELOW.fullmatch(posixpath.normpath(unquote(path))):
        found = _TEXT.fullmatch(error)
        assert found is not None and found[3] == request_id, error
        return found[1], found[2]
    assert sorted(error) == ["code", "message"]
    return error["code"], error["message"]
