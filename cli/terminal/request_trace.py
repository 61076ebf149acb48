"""What ``--verbose`` and ``--debug`` show of the talk with the control plane.

Decides which parts are secret. Must not know what the requests are for.
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
#: Fields of bodies and parameters of addresses that are secrets whatever is in them, in lower case without underscores.
_SECRET_FIELDS = frozenset(
    (
        *("primarykey", "secondarykey", "keyvalue", "key", "accesstoken", "refreshtoken", "idtoken", "token"),
        *("sastoken", "sasuri", "sig", "signature", "clientsecret", "clientassertion", "password", "secret"),
        *("kubeconfig", "accountkey", "connectionstring"),
    )
)
#: Environment variables of a deployment whose names say that they are secret.
_SECRET_NAME = re.compile(r"key|token|secret|passw|credential|connection_?string", re.IGNORECASE)
_PARAMETER = re.compile(r"(?<=[?&])([^=&#\s]+)=([^&#\s\"]*)")
_SHOWN_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class Trace:
    """``lines``: one line for each request; ``bodies``: headers and JSON bodies, too."""

    lines: bool
    bodies: bool

    @classmethod
    def of(cls, options: Options) -> Trace:
        return cls(lines=options.verbose or options.debug, bodies=options.debug)

    def exchange(self, request: httpx.Request, response: httpx.Response, seconds: float) -> None:
        """One request and its answer, which took ``seconds``, to stderr."""
        if self.lines:
            took = f"{seconds * 1000:.0f} ms"
            sys.stderr.write(f"{request.method} {address(str(request.url))} -> {response.status_code} in {took}\n")
        if self.bodies:
            # A request's body may be a stream of files: only what is JSON is shown.
            sent = request.content if request.headers.get("content-type", "").startswith("application/json") else b""
            sys.stderr.write(_half(">", request.headers, sent) + _half("<", response.headers, response.content))


def _half(mark: str, headers: Mapping[str, str], body: bytes) -> str:
    lines = [
        f"{name}: {MASK if name.lower() in _SECRET_HEADERS else address(value)}" for name, value in headers.items()
    ]
    if body:
        lines.append(_body(body))
    return "".join(f"{mark} {line}\n" for line in lines)


def _body(body: bytes) -> str:
    try:
        text = json.dumps(masked(json.loads(body)))
    except ValueError:
        # Not JSON: it may be anything, a log or a model, and is not for this place.
        return f"({len(body)} bytes)"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}… ({len(text)} characters)"


def masked(value: Any, *, environment: bool = False) -> Any:
    """``value`` with every secret replaced by ``***``, and in addresses their secret parameters.

    ``environment``: it is a deployment's environment variables, whose names tell.
    """
    if isinstance(value, Mapping):
        return {
            name: MASK
            if isinstance(item, str) and _is_secret(str(name), environment=environment)
            else masked(item, environment=_plain(str(name)) == "environmentvariables")
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [masked(item) for item in value]
    return address(value) if isinstance(value, str) else value


def address(text: str) -> str:
    """``text`` with the values of secret parameters (a shared access signature, a grant) replaced by ``***``."""
    return _PARAMETER.sub(lambda m: f"{m[1]}={MASK}" if _plain(m[1]) in _SECRET_FIELDS else m[0], text)


def _is_secret(name: str, *, environment: bool) -> bool:
    return bool(_SECRET_NAME.search(name)) if environment else _plain(name) in _SECRET_FIELDS


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
