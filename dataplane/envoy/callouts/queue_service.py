"""Holds requests above the limit of their deployment until there is a place for them.

Envoy's ``ExternalProcessor`` service. Decides what a stream's metadata and messages mean, and the
texts of refusals; ``request_queue`` decides who waits. A stream is one request: it begins when the
request has arrived and ends when the request has. Must not know routes or tables. Source: Envoy's
API package ``service.ext_proc.v3``.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]

from amphitrite.dataplane.envoy.callouts.request_queue import Decision, Outcome, RequestQueue
from amphitrite.dataplane.envoy.filters.queueing import CLUSTER, FILTER, REFUSED, WAIT_MS
from amphitrite.dataplane.envoy.protobuf.messages import ProcessingRequest, ProcessingResponse

#: What Envoy waits beyond the agent's own deadline.
_MARGIN_S = 1.0
#: The resolution of the loop's timers.
_CLOCK_S = 0.001
_TOO_MANY_REQUESTS = 429


class QueueService:
    """A :class:`callouts.server.Service`. All but ``set_places`` and ``waiting`` belongs to the
    loop's thread."""

    name = "envoy.service.ext_proc.v3.ExternalProcessor"

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._places: dict[str, int] = {}
        self._queues: dict[str, RequestQueue] = {}
        self._waiters: dict[int, asyncio.Future[Outcome]] = {}
        self._tickets = itertools.count()

    def handlers(self) -> Mapping[str, grpc.RpcMethodHandler]:
        return {
            "Process": grpc.stream_stream_rpc_method_handler(
                self._process,
                request_deserializer=ProcessingRequest.FromString,
                response_serializer=ProcessingResponse.SerializeToString,
            )
        }

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def set_places(self, places: Mapping[str, int]) -> None:
        """How many requests each cluster may have in flight. Any thread. A cluster that is not
        named keeps its places until its last request has ended."""
        if self._loop is None:
            self._places = dict(places)
        else:
            self._loop.call_soon_threadsafe(self._set_places, dict(places))

    def waiting(self) -> dict[str, int]:
        """The requests that wait, by cluster. Any thread."""
        return {cluster: queue.waiting for cluster, queue in list(self._queues.items()) if queue.waiting}

    def _set_places(self, places: dict[str, int]) -> None:
        self._places = places
        for cluster, queue in self._queues.items():
            if cluster in places and places[cluster] != queue.places:
                self._decide(queue.resize(places[cluster], self._now()))

    async def _process(self, _: object, context: Any) -> None:
        ticket, asked = next(self._tickets), dict(context.invocation_metadata())
        try:
            if await context.read() is grpc.aio.EOF:
                return
            outcome, end = self._arrive(ticket, asked), None
            if outcome is Outcome.WAITS:
                await context.write(_patience(_wait_s(asked) + _MARGIN_S))
                # A read that is cancelled ends the stream. So this one goes on after the wait.
                end = asyncio.ensure_future(context.read())
                end.add_done_callback(_hear)
                outcome = await self._decision(ticket, asked, end)
            if outcome is Outcome.ADMITTED:
                await context.write(_GO_ON)
                while await (end or context.read()) is not grpc.aio.EOF:
                    await context.write(_GO_ON_AT_END)
                    end = None
            elif outcome is not Outcome.WAITS:
                await context.write(self._refusal(outcome, asked))
        finally:
            self._leave(ticket, asked)

    def _arrive(self, ticket: int, asked: Mapping[str, str]) -> Outcome:
        queue = self._queue(asked[CLUSTER])
        if queue is None:  # A new agent: Envoy knows the limit.
            return Outcome.ADMITTED
        now = self._now()
        outcome = queue.arrive(ticket, now + _wait_s(asked), now)
        if outcome is Outcome.WAITS:
            self._waiters[ticket] = self._running().create_future()
        return outcome

    async def _decision(self, ticket: int, asked: Mapping[str, str], end: asyncio.Future[Any]) -> Outcome:
        """What becomes of a request that waits. WAITS: its client has left."""
        decided, cluster = self._waiters[ticket], asked[CLUSTER]
        timer = self._running().call_later(_wait_s(asked), self._advance, cluster)
        try:
            await asyncio.wait((decided, end), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
        return decided.result() if decided.done() else Outcome.WAITS

    def _leave(self, ticket: int, asked: Mapping[str, str]) -> None:
        self._waiters.pop(ticket, None)
        cluster = asked[CLUSTER]
        queue = self._queues.get(cluster)
        if queue is None:
            return
        self._decide(queue.leave(ticket, self._now()))
        if not queue.in_flight and not queue.waiting:
            del self._queues[cluster]

    def _advance(self, cluster: str) -> None:
        if (queue := self._queues.get(cluster)) is not None:
            # A timer may fire a moment before its time.
            self._decide(queue.advance(self._now() + _CLOCK_S))

    def _decide(self, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            self._waiters[decision.ticket].set_result(decision.outcome)

    def _queue(self, cluster: str) -> RequestQueue | None:
        queue = self._queues.get(cluster)
        if queue is None and cluster in self._places:
            queue = self._queues[cluster] = RequestQueue(self._places[cluster])
        return queue

    def _refusal(self, outcome: Outcome, asked: Mapping[str, str]) -> Any:
        queue = self._queues.get(asked[CLUSTER])
        if outcome is Outcome.LATE:
            text = f"This one has waited {asked[WAIT_MS]} ms for a place"
        else:
            text = f"{queue.waiting if queue is not None else 0} requests wait for a place already"
        refused = ProcessingResponse(immediate_response={"status": {"code": _TOO_MANY_REQUESTS}, "body": text.encode()})
        refused.dynamic_metadata.update({FILTER: {REFUSED: True}})
        return refused

    def _now(self) -> float:
        return self._running().time()

    def _running(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None
        return self._loop


def _hear(ended: asyncio.Future[Any]) -> None:
    """A stream that breaks while its request waits has ended. That is no fault."""
    if not ended.cancelled():
        ended.exception()


def _wait_s(asked: Mapping[str, str]) -> float:
    return int(asked[WAIT_MS]) / 1000


def _patience(seconds: float) -> Any:
    """Envoy waits so long for the next message. It is asked only where a request must wait."""
    milliseconds = round(seconds * 1000)
    duration = {"seconds": milliseconds // 1000, "nanos": milliseconds % 1000 * 1_000_000}
    return ProcessingResponse(override_message_timeout=duration)


_GO_ON = ProcessingResponse(request_headers={})
_GO_ON_AT_END = ProcessingResponse(response_trailers={})
