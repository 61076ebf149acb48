"""HTTP without TLS at the server's port: one answer, that it takes HTTPS alone.

Decides which failed handshakes get it, and the answer. Must not know connections.
"""

from __future__ import annotations

import json
import ssl
from typing import Any

from amphitrite.schemas.errors import Error

#: OpenSSL's reasons for a first record that is none of TLS. It knows four of HTTP's methods.
_REASONS = ("HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "WRONG_VERSION_NUMBER")


def is_plain(error: BaseException) -> bool:
    """Whether a handshake has failed with ``error`` because the client does not speak TLS."""
    return isinstance(error, ssl.SSLError) and error.reason in _REASONS


def answer(address: Any) -> bytes:
    """The whole response. ``address``: where the client has connected to, as a socket gives it."""
    host, port = address[:2]
    url = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    error = Error("HttpsRequired", f"a plain HTTP request was sent to a port that takes HTTPS: the address is {url}")
    body = json.dumps({"error": error.to_body()}).encode()
    head = f"HTTP/1.1 {error.status} Bad Request\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body
