"""Holds requests to a deployment that sleeps, until it can serve them.

Envoy's ``Authorization`` service. Decides what a call says about a request, and the form of the
answer. Must not know when it is given
(``waiting_room``). Source: Envoy's API package ``service.auth.v3``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import grpc  # type: ignore[import-untyped]

from amphitrite.dataplane.envoy.callouts.waiting_room import Admitted, Refused, WaitingRoom
from amphitrite.dataplane.envoy.protobuf.messages import CheckRequest, CheckResponse
from amphitrite.dataplane.envoy.translate.held_requests import (
    DEPLOYMENT,
    ENDPOINT,
    STREAM,
    TIME_LEFT,
    TIMEOUT_MS,
    WOKEN,
)

#: gRPC's status numbers. Any but 0 refuses the request.
_OK, _UNAVAILABLE = 0, 14


class HoldService:
    """A :class:`callouts.server.Service`."""

    name = "envoy.service.auth.v3.Authorization"

    def __init__(self, room: WaitingRoom) -> None:
        self._room = room

    def handlers(self) -> Mapping[str, grpc.RpcMethodHandler]:
        return {
            "Check": grpc.unary_unary_rpc_method_handler(
                self._check,
                request_deserializer=CheckRequest.FromString,
                response_serializer=CheckResponse.SerializeToString,
            )
        }

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._room.begin(loop)

    async def _check(self, request: Any, context: Any) -> Any:
        attributes = request.attributes
        told = attributes.context_extensions
        began = attributes.request.time
        arrived = began.seconds + began.nanos / 1e9 if attributes.request.HasField("time") else time.time()
        timeout_s = float(told.get(TIMEOUT_MS) or 0.0) / 1000
        verdict = await self._room.wait((told.get(ENDPOINT, ""), told.get(DEPLOYMENT, "")), arrived, timeout_s)
        return _refused(verdict) if isinstance(verdict, Refused) else _admitted(verdict, stream=bool(told.get(STREAM)))


def _admitted(verdict: Admitted, *, stream: bool) -> Any:
    answer = CheckResponse()
    answer.status.code = _OK
    _set(answer.ok_response, WOKEN, f"{verdict.held_s * 1000:.0f}")
    if not stream:  # Only the pauses of a stream are limited.
        _set(answer.ok_response, TIME_LEFT, f"{max(verdict.left_s * 1000, 1):.0f}")
    return answer


def _refused(verdict: Refused) -> Any:
    answer = CheckResponse()
    answer.status.code = _UNAVAILABLE
    answer.denied_response.status.code = verdict.status
    answer.denied_response.body = verdict.message
    return answer


def _set(response: Any, name: str, value: str) -> None:
    option = response.headers.add()
    option.header.key, option.header.value = name, value
    option.append_action = option.HeaderAppendAction.Value("OVERWRITE_IF_EXISTS_OR_ADD")
