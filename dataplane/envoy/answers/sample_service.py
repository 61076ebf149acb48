"""The service to which Envoy shows requests and their answers.

Envoy's ``ExternalProcessor``, in observability mode: nothing is answered. Decides when a sample's
stream ends: as soon as it is complete or of no use. A stream that the agent ends costs Envoy
nothing more. Must not know what becomes of a complete one. Source: Envoy's API package
``service.ext_proc.v3``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]

from amphitrite.dataplane.envoy.answers.comparer import Comparer
from amphitrite.dataplane.envoy.answers.exchange import Recording, State
from amphitrite.dataplane.envoy.answers.sample_filter import ENDPOINT
from amphitrite.dataplane.envoy.protobuf.messages import ProcessingRequest, ProcessingResponse


class SampleService:
    """Its handler is a task of an event loop for each sample."""

    name = "envoy.service.ext_proc.v3.ExternalProcessor"

    def __init__(self, comparer: Comparer) -> None:
        self._comparer = comparer

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Nothing is needed of the loop."""

    def handlers(self) -> Mapping[str, grpc.RpcMethodHandler]:
        """The handlers by method."""
        return {
            "Process": grpc.stream_stream_rpc_method_handler(
                self._process,
                request_deserializer=ProcessingRequest.FromString,
                response_serializer=ProcessingResponse.SerializeToString,
            )
        }

    async def _process(self, _: object, context: Any) -> None:
        endpoint = dict(context.invocation_metadata()).get(ENDPOINT, "")
        if not self._comparer.enter(endpoint):
            return
        recording, state, refused = Recording(endpoint), State.OPEN, False
        try:
            while state is State.OPEN and not refused:
                message = await context.read()
                if message is grpc.aio.EOF:
                    break
                before = recording.size
                state = recording.add(message)
                refused = not self._comparer.hold(recording.size - before)
        finally:
            if state is State.COMPLETE and not refused:
                self._comparer.submit(recording.exchange())
            else:
                dropped = refused or state is State.TOO_LARGE
                self._comparer.leave(endpoint, recording.size, dropped=dropped)
