"""Reading requests: a JSON object, and preconditions.

Decides which bodies are readable and their maximum size. Must not know their content.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import Request

from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.settings.settings import Limits
from amphitrite.schemas.errors import Error

#: The maximum depth of objects and lists in a body.
DEPTH_MAX = 64


async def read_bytes(request: Request, limit: int) -> bytes:
    """The body. Raises Error("RequestTooLarge") once it is known to exceed ``limit`` bytes."""
    declared = request.headers.get("content-length", "")
    size, parts = 0, []
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(int(declared), limit)
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise _too_large(size, limit)
        parts.append(part)
    return b"".join(parts)


async def _json_object(request: Request, here: Here) -> dict[str, Any]:
    """The JSON object in the body; an empty body counts as ``{}``. Raises Error BadArgument or
    RequestTooLarge."""
    data = await read_bytes(request, here.settings.limits.json_body_bytes)
    if not data:
        return {}
    try:
        value = json.loads(data, parse_float=_finite, parse_constant=_refuse)
        # JSON can escape a lone surrogate, but it cannot be stored as UTF-8.
        json.dumps(value, ensure_ascii=False).encode("utf-8")
        _require_shallow(value)
    except (ValueError, RecursionError) as exc:
        raise Error("BadArgument", f"the body is not JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise Error("BadArgument", f"the body must be a JSON object, but is of type {type(value).__name__}")
    return value


#: The parameter type for the body.
Body = Annotated[dict[str, Any], Depends(_json_object)]


def whole(value: Any) -> int | None:
    """A whole number, which JSON may write as 5 or 5.0; None for anything else."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def positive(value: Any, name: str, allowed: str) -> int:
    """A whole number from 1. Raises Error BadArgument, with what is ``allowed``, for anything
    else."""
    number = whole(value)
    if number is None or number < 1:
        raise Error("BadArgument", f"{name} is {value!r}; allowed: {allowed}", target=name)
    return number


@dataclass(frozen=True, slots=True)
class Conditions:
    """The preconditions of a write: ``If-Match`` as sent, and whether ``If-None-Match: *`` was
    sent."""

    if_match: str | None
    if_none_match: bool


def _conditions(request: Request) -> Conditions:
    none_match = request.headers.get("if-none-match")
    if none_match not in (None, "*"):
        raise Error("BadArgument", f"If-None-Match is {none_match!r}; allowed: *", target="If-None-Match")
    return Conditions(request.headers.get("if-match"), none_match == "*")


#: The parameter type for the preconditions.
IfMatch = Annotated[Conditions, Depends(_conditions)]


def _require_shallow(value: Any) -> None:
    """Raises ValueError if the value is nested too deeply to be processed recursively."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > DEPTH_MAX:
            raise ValueError(f"it is nested deeper than {DEPTH_MAX} levels")
        level = [
            child
            for outer in level
            if isinstance(outer, dict | list)
            for child in (outer.values() if isinstance(outer, dict) else outer)
        ]


def _too_large(size: int, limit: int) -> Error:
    return Error(
        "RequestTooLarge",
        f"the body has at least {size} bytes; at most {limit} (json_body_bytes)",
        hint=f"set a larger {Limits.variable('json_body_bytes')} and restart the server",
    )


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is not a number in JSON")
