"""One request with its answer, put together from the pieces that Envoy shows.

Decides when an exchange is complete, and which are of no use: another status than 200, a body that
is too large. Pure. Must not know gRPC, nor what is done with an exchange. Source: Envoy's API
package ``service.ext_proc.v3``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from amphitrite.dataplane.comparison.answers import BODY_MAX, JSON_LENGTH

#: The request headers by which a model server knows how to read a body, and how to answer.
_REPEATED = ("content-type", JSON_LENGTH)


@dataclass(frozen=True, slots=True)
class Exchange:
    """``path``: as the client has sent it. ``headers``: of the request, those that its body
    needs."""

    endpoint: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    answer: bytes
    answer_json_length: str = ""
    answer_coding: str = ""

    @property
    def size(self) -> int:
        """The bytes of both bodies."""
        return len(self.body) + len(self.answer)


class State(Enum):
    """OPEN: there is more to come. COMPLETE. USELESS: the request was not answered 200. TOO_LARGE:
    for being compared."""

    OPEN = "open"
    COMPLETE = "complete"
    USELESS = "useless"
    TOO_LARGE = "too large"


class Recording:
    """The pieces of one exchange. ``size``: the bytes that are held."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._request: dict[str, str] = {}
        self._answer: dict[str, str] = {}
        self._body, self._answer_body = bytearray(), bytearray()

    @property
    def size(self) -> int:
        return len(self._body) + len(self._answer_body)

    def add(self, message: Any) -> State:
        """``message``: the next ``ProcessingRequest``."""
        kind = message.WhichOneof("request")
        piece: Any = getattr(message, kind) if kind else None
        if kind == "request_headers":
            self._request = _headers(piece)
        elif kind == "response_headers":
            self._answer = _headers(piece)
            if self._answer.get(":status") != "200" or piece.end_of_stream:
                return State.USELESS
        elif kind in ("request_body", "response_body"):
            body = self._body if kind == "request_body" else self._answer_body
            if len(body) + len(piece.body) > BODY_MAX:
                return State.TOO_LARGE
            body += piece.body
            if kind == "response_body" and piece.end_of_stream:
                return State.COMPLETE
        return State.OPEN

    def exchange(self) -> Exchange:
        """Once it is complete."""
        return Exchange(
            self._endpoint,
            self._request.get(":path", ""),
            {name: self._request[name] for name in _REPEATED if name in self._request},
            bytes(self._body),
            bytes(self._answer_body),
            self._answer.get(JSON_LENGTH, ""),
            self._answer.get("content-encoding", ""),
        )


def _headers(piece: Any) -> dict[str, str]:
    """By name. Envoy puts values into either of two fields."""
    return {h.key: (h.raw_value or h.value.encode()).decode("latin-1") for h in piece.headers.headers}
