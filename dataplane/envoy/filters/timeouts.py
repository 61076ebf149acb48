"""How long a request may take: a response as a whole, or the pauses of a stream.

Decides which requests ask for a stream of events, and Envoy's timeouts for each kind. The length of
a stream (a language model's response, for one) cannot be foreseen, so only its pauses are limited.
A request occupies one of the deployment's places as soon as its headers have arrived, so a client
that falls silent must not keep it. Must not know targets. Source: Envoy's page "How do I configure
timeouts?".
"""

from __future__ import annotations

from typing import Any

from amphitrite.dataplane.envoy.protobuf.common_values import seconds

#: How long a request may pass no byte in either direction, where its route says nothing else.
IDLE_S = 300.0
#: How long a request may take to arrive. Without it, one byte now and then would keep a place
#: forever.
RECEIVED_S = 300.0
#: How much longer than the response's timeout a request may pass no byte. The timeout should be the
#: one that tells the client why, and a network that stalls may recover.
_MARGIN_S = 10.0
#: The same for the wait for a place.
_WAIT_MARGIN_S = 1.0

#: Triton streams at this address of any model (its document "Generate Extension").
_STREAMS = "/generate_stream"
#: Conditions (``HeaderMatcher``) on a request for a stream: its path, or what it accepts.
BY_PATH: dict[str, Any] = {
    "name": ":path",
    "string_match": {"safe_regex": {"regex": rf"[^?]*{_STREAMS}(\?.*)?"}},
}
BY_ACCEPT: dict[str, Any] = {
    "name": "accept",
    "string_match": {"contains": "text/event-stream", "ignore_case": True},
}


def is_stream(path: str) -> bool:
    """Whether Triton answers this upstream path with a stream."""
    return path.endswith(_STREAMS)


def route_timeouts(timeout_s: float, *, stream: bool, wait_s: float = 0.0) -> dict[str, Any]:
    """The part of a ``RouteAction`` that limits a request in time. ``wait_s``: how long it may wait
    for a place before, which is no longer than ``timeout_s``. No byte is passed meanwhile."""
    if stream:
        return {"timeout": "0s", "idle_timeout": seconds(max(timeout_s, wait_s + _WAIT_MARGIN_S if wait_s else 0.0))}
    return {"timeout": seconds(timeout_s), "idle_timeout": seconds(timeout_s + _MARGIN_S)}


def message_values(timeout_s: float, *, stream: bool) -> dict[str, str]:
    """The same for messages: ``timeout`` of a response, ``pause`` of a stream."""
    limit = f"{timeout_s * 1000:g} ms"
    if stream:
        return {"timeout": limit, "pause": f"{limit} (request_settings.request_timeout_ms limits a stream's pauses)"}
    return {"timeout": limit, "pause": f"{timeout_s + _MARGIN_S:g} s"}
