"""The aggregated discovery service (delta xDS, gRPC on a UNIX socket) that configures Envoy.

Decides how snapshots meet streams. Must not know what a resource means. ``delta_stream`` decides
what is sent, ``table_updates`` when a snapshot is published. Source: Envoy's page "xDS REST and
gRPC protocol".
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]

from amphitrite.dataplane.envoy.process.launch_command import LAUNCH_KEY
from amphitrite.dataplane.envoy.protobuf.messages import DeltaRequest, DeltaResponse
from amphitrite.dataplane.envoy.translate.resources import CLUSTER, ENDPOINTS, EXTENSION, ROUTES, SCOPES
from amphitrite.dataplane.envoy.xds.delta_stream import DeltaStream, Rejection, Request, Response, Snapshot

#: The types of a routing table's resources. The certificate is followed separately.
TABLE_TYPES = (CLUSTER, ENDPOINTS, EXTENSION, ROUTES, SCOPES)
_METHOD = "DeltaAggregatedResources"
_SERVICE = "envoy.service.discovery.v3.AggregatedDiscoveryService"
#: One stream is in use. A second one is open during a hot restart.
_STREAMS = 4


class _Connection:
    """A stream and its mailbox. A message is a request, True for "there may be something to send",
    or None for the end."""

    def __init__(self) -> None:
        self.stream = DeltaStream()
        self.launch = ""  #: the id of Envoy's launch, from its first request
        self.mailbox: queue.SimpleQueue[Any] = queue.SimpleQueue()


class AdsServer:
    """Serves the published snapshot on Envoy's stream and knows what Envoy has accepted.

    ``changed`` is notified when a stream begins, ends or gets a request. ``on_rejection`` is called
    with ``changed`` held, on a thread of the server, for each response that Envoy rejects. Nothing
    is sent before the first ``publish``.
    """

    def __init__(self, socket: Path, changed: threading.Condition, on_rejection: Callable[[Rejection], None]) -> None:
        self._changed = changed
        self._snapshot: Snapshot | None = None
        self._connections: list[_Connection] = []
        self._current_launch: str | None = None
        self._on_rejection = on_rejection
        self._socket = socket
        self._pool = futures.ThreadPoolExecutor(_STREAMS, thread_name_prefix="ads")
        self._server = grpc.server(self._pool, options=[("grpc.max_receive_message_length", 64 * 1024 * 1024)])
        handler = grpc.stream_stream_rpc_method_handler(
            self._serve,
            request_deserializer=DeltaRequest.FromString,
            response_serializer=DeltaResponse.SerializeToString,
        )
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, {_METHOD: handler}),))

    def start(self) -> None:
        self._socket.unlink(missing_ok=True)
        self._server.add_insecure_port(f"unix:{self._socket}")
        self._server.start()

    def stop(self) -> None:
        with self._changed:
            for connection in self._connections:
                connection.mailbox.put(None)
        self._server.stop(grace=0.5).wait()
        self._pool.shutdown()
        self._socket.unlink(missing_ok=True)

    def publish(self, snapshot: Snapshot) -> None:
        """Make ``snapshot`` the one that Envoy should have."""
        with self._changed:
            self._snapshot = snapshot
            for connection in self._connections:
                connection.mailbox.put(True)

    def serve_only(self, launch: str) -> None:
        """Serve only the Envoy of this launch from now on. Any other one keeps what it has until it
        ends."""
        with self._changed:
            self._current_launch = launch
            self._changed.notify_all()

    @property
    def client_has_resources(self) -> bool:
        """Whether Envoy is connected and may have resources, of this agent's or of an earlier
        one's."""
        with self._changed:
            return any(self._is_current(c) and not c.stream.empty for c in self._connections)

    def in_force(self) -> bool:
        """Whether Envoy has accepted the whole published table. False while Envoy is not
        connected."""
        with self._changed:
            current = [c for c in self._connections if self._is_current(c)]
            if self._snapshot is None or not current:
                return False
            return current[-1].stream.in_force(self._snapshot, TABLE_TYPES)

    def _is_current(self, connection: _Connection) -> bool:
        return self._current_launch is None or connection.launch == self._current_launch

    def _serve(self, requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        connection = _Connection()
        context.add_callback(lambda: connection.mailbox.put(None))
        threading.Thread(target=_read, args=(requests, connection.mailbox), daemon=True).start()
        with self._changed:
            self._connections.append(connection)
        try:
            while (message := connection.mailbox.get()) is not None:
                if message is not True and message.HasField("node"):
                    connection.launch = launch_id_of(message.node)
                yield from self._answer(connection, None if message is True else _request(message))
        finally:
            with self._changed:
                self._connections.remove(connection)
                self._changed.notify_all()

    def _answer(self, connection: _Connection, request: Request | None) -> list[Any]:
        with self._changed:
            rejection = connection.stream.receive(request) if request is not None else None
            current = self._is_current(connection)
            if rejection is not None and current:
                self._on_rejection(rejection)
            self._changed.notify_all()
            if self._snapshot is None or not current:
                return []
            return [self._message(response) for response in connection.stream.pending(self._snapshot)]

    def _message(self, response: Response) -> Any:
        message = DeltaResponse(type_url=response.type_url, nonce=response.nonce)
        for name, resource in response.changed:
            message.resources.add(name=name, version=resource.version, resource=resource.packed)
        message.removed_resources.extend(response.removed)
        return message


def launch_id_of(node: Any) -> str:
    """The id of the launch in the metadata of an xDS node; empty: it has none."""
    fields = node.metadata.fields
    return str(fields[LAUNCH_KEY].string_value) if LAUNCH_KEY in fields else ""


def _read(requests: Iterator[Any], mailbox: queue.SimpleQueue[Any]) -> None:
    try:
        for request in requests:
            mailbox.put(request)
    except grpc.RpcError:  # The stream is broken. The end of the mailbox says so.
        pass
    finally:
        mailbox.put(None)


def _request(message: Any) -> Request:
    return Request(
        type_url=message.type_url,
        subscribe=tuple(message.resource_names_subscribe),
        unsubscribe=tuple(message.resource_names_unsubscribe),
        resource_versions=dict(message.initial_resource_versions),
        nonce=message.response_nonce,
        error=message.error_detail.message if message.HasField("error_detail") else None,
    )
