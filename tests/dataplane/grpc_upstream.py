"""The gRPC side of a model server for tests: Triton's methods without Triton, answering who was
asked what.

Messages are bytes. ``held`` in a request waits until ``release()``, ``streams`` echo each message,
all other answers are JSON of what arrived. An ``Upstream`` beside it answers health checks.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from types import TracebackType
from typing import Any

import grpc

SERVICE = "inference.GRPCInferenceService"


class GrpcUpstream(grpc.GenericRpcHandler):
    """Serves from ``__enter__`` to ``__exit__`` on a free loopback port, or on the UNIX socket
    ``path``."""

    def __init__(self, name: str, path: Path | None = None) -> None:
        self.name = name
        self.requests: list[dict[str, Any]] = []
        self.called: list[str] = []  #: methods of calls that have begun, whatever became of them
        self.arrived = threading.Semaphore(0)  #: released for each held request that arrives
        self.ended = threading.Semaphore(0)  #: released for each held request that was cancelled
        self._gate = threading.Event()
        self._server = grpc.server(
            futures.ThreadPoolExecutor(8), handlers=(self,), options=[("grpc.max_receive_message_length", -1)]
        )
        self.port = self._server.add_insecure_port("127.0.0.1:0" if path is None else f"unix:{path}")

    def release(self) -> None:
        self._gate.set()

    def hold(self) -> None:
        self._gate.clear()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        self.called.append(details.method)
        metadata = {k: v for k, v in details.invocation_metadata if isinstance(v, str)}

        def unary(request: bytes, context: grpc.ServicerContext) -> bytes:
            seen = {"upstream": self.name, "method": details.method, "metadata": metadata, "size": len(request)}
            self.requests.append(seen)
            if request == b"held":
                context.add_callback(self.ended.release)
                self.arrived.release()
                self._gate.wait(30)
            if request == b"fails":
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, "unexpected shape for input")
            return json.dumps(seen).encode()

        def stream(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            self.requests.append({"upstream": self.name, "method": details.method, "metadata": metadata})
            yield from requests

        if details.method.endswith("/ModelStreamInfer"):
            return grpc.stream_stream_rpc_method_handler(stream)
        return grpc.unary_unary_rpc_method_handler(unary)

    def __enter__(self) -> GrpcUpstream:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        self._server.stop(None).wait()
