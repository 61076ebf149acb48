"""What ``--verbose`` and ``--debug`` show of the talk with the control plane.

Decides which parts are secret. Must not know what the requests are for.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amphitrite.cli.options import Options

if TYPE_CHECKING:
    import httpx

MASK = "***"
_SECRET_HEADERS = frozenset({"authorization", "x-identity-header"})
_SECRET_FIELDS = frozenset({"primarykey", "secondarykey", "keyvalue", "key", "accesstoken", "access_token", "sastoken"})
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
            sys.stderr.write(f"{request.method} {request.url} -> {response.status_code} in {took}\n")
        if self.bodies:
            # A request's body may be a stream of files: only what is JSON is shown.
            sent = request.content if request.headers.get("content-type", "").startswith("application/json") else b""
            sys.stderr.write(_half(">", request.headers, sent) + _half("<", response.headers, response.content))


def _half(mark: str, headers: Mapping[str, str], body: bytes) -> str:
    lines = [f"{name}: {MASK if name.lower() in _SECRET_HEADERS else value}" for name, value in headers.items()]
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


def masked(value: Any) -> Any:
    """``value`` with every secret replaced by ``***``."""
    if isinstance(value, Mapping):
        return {
            name: MASK if str(name).lower() in _SECRET_FIELDS and isinstance(item, str) else masked(item)
            for name, item in value.items()
        }
    return [masked(item) for item in value] if isinstance(value, list) else value
