"""How long a request may take: an answer as a whole, or the pauses of a stream.

Decides which requests ask for a stream of events, and what Envoy is told of time for each kind. A stream has no length
that could be foreseen (an answer of a language model, for one), so only its pauses are bounded. A request has one of
the deployment's places as soon as its head is there, so a client that falls silent must not keep it. Must not know
targets.
"""

from __future__ import annotations

from typing import Any

from amphitrite.dataplane.envoy.protobuf.common_values import seconds

#: How long a request may pass no byte in either direction, where its route says nothing else.
IDLE_S = 300.0
#: How long a request may come. Without it one byte now and then would keep a place for ever.
RECEIVED_S = 300.0
#: How much longer than an answer may take its request may pass no byte: the timeout is the one to tell the client why,
#: and a network that stalls may recover.
_MARGIN_S = 10.0

#: Triton streams below this address, whatever the model.
_STREAMS = "/generate_stream"
#: Conditions (``HeaderMatcher``) on a request for a stream: its path, or, where that says nothing, what it accepts.
BY_PATH: dict[str, Any] = {
    "name": ":path",
    "string_match": {"safe_regex": {"regex": rf"[^?]*{_STREAMS}(\?.*)?"}},
}
BY_ACCEPT: dict[str, Any] = {
    "name": "accept",
    "string_match": {"contains": "text/event-stream", "ignore_case": True},
}


def streams(path: str) -> bool:
    """Whether Triton answers this upstream path with a stream."""
    return path.endswith(_STREAMS)


def of_route(timeout_s: float, *, stream: bool) -> dict[str, Any]:
    """The part of a ``RouteAction`` that bounds a request in time."""
    if stream:
        return {"timeout": "0s", "idle_timeout": seconds(timeout_s)}
    return {"timeout": seconds(timeout_s), "idle_timeout": seconds(timeout_s + _MARGIN_S)}


def in_words(timeout_s: float, *, stream: bool) -> dict[str, str]:
    """The same for messages: ``timeout`` of an answer, ``pause`` of a stream."""
    bound = f"{timeout_s * 1000:g} ms"
    if stream:
        return {"timeout": bound, "pause": f"{bound} (request_settings.request_timeout_ms bounds a stream's pauses)"}
    return {"timeout": bound, "pause": f"{timeout_s + _MARGIN_S:g} s"}
