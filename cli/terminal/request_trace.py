"""The requests and responses that ``--verbose`` and ``--debug`` print.

Decides which parts are secret and are masked. Must not know what the requests are for.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amphitrite.cli.terminal.options import Options

if TYPE_CHECKING:
    import httpx

MASK = "***"
_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "x-identity-header", "cookie", "set-cookie"})
#: Fields of bodies and query parameters whose values are always secret, in lower case without
#: underscores.
_SECRET_FIELDS = frozenset(
    (
        *("primarykey", "secondarykey", "keyvalue", "key", "accesstoken", "refreshtoken", "idtoken", "token"),
        *("sastoken", "sasuri", "sig", "signature", "clientsecret", "clientassertion", "password", "secret"),
        *("kubeconfig", "accountkey", "connectionstring"),
    )
)
#: Names of a deployment's environment variables whose values are probably secret.
_SECRET_NAME = re.compile(r"key|token|secret|passw|credential|connection_?string", re.IGNORECASE)
_PARAMETER = re.compile(r"(?<=[?&])([^=&#\s]+)=([^&#\s\"]*)")
_SHOWN_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class Trace:
    """``lines``: print one line for each request. ``bodies``: print headers and JSON bodies."""

    lines: bool
    bodies: bool

    @classmethod
    def of(cls, options: Options) -> Trace:
        """The trace that ``--verbose`` and ``--debug`` ask for."""
        return cls(lines=options.verbose or options.debug, bodies=options.debug)

    def print_exchange(self, request: httpx.Request, response: httpx.Response, seconds: float) -> None:
        """Print a request and its response, which took ``seconds``, to stderr."""
        if self.lines:
            took = f"{seconds * 1000:.0f} ms"
            sys.stderr.write(f"{request.method} {mask_url(str(request.url))} -> {response.status_code} in {took}\n")
        if self.bodies:
            # The body of a request may be a stream of files: only JSON is shown.
            sent = request.content if request.headers.get("content-type", "").startswith("application/json") else b""
            sys.stderr.write(
                _format_message(">", request.headers, sent) + _format_message("<", response.headers, response.content)
            )


def _format_message(mark: str, headers: Mapping[str, str], body: bytes) -> str:
    lines = [
        f"{name}: {MASK if name.lower() in _SECRET_HEADERS else mask_url(value)}" for name, value in headers.items()
    ]
    if body:
        lines.append(_body(body))
    return "".join(f"{mark} {line}\n" for line in lines)


def _body(body: bytes) -> str:
    try:
        text = json.dumps(mask_secrets(json.loads(body)))
    except ValueError:
        # Anything else (a log, a model) is not shown.
        return f"({len(body)} bytes)"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}… ({len(text)} characters)"


def mask_secrets(value: Any, *, environment: bool = False) -> Any:
    """``value`` with every secret replaced by ``***``, and secret query parameters in URLs as well.

    ``environment``: ``value`` holds environment variables, whose names decide what is secret.
    """
    if isinstance(value, Mapping):
        return {
            name: MASK
            if isinstance(item, str) and _is_secret(str(name), environment=environment)
            else mask_secrets(item, environment=_plain(str(name)) == "environmentvariables")
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [mask_secrets(item) for item in value]
    return mask_url(value) if isinstance(value, str) else value


def mask_url(text: str) -> str:
    """``text`` with the values of secret query parameters replaced by ``***``."""
    return _PARAMETER.sub(lambda m: f"{m[1]}={MASK}" if _plain(m[1]) in _SECRET_FIELDS else m[0], text)


def _is_secret(name: str, *, environment: bool) -> bool:
    return bool(_SECRET_NAME.search(name)) if environment else _plain(name) in _SECRET_FIELDS


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
