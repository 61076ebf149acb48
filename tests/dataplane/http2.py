"""An HTTP/2 client that sends what no decent one would: nothing is judged or tidied up before it goes out."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from types import TracebackType

import h2.config
import h2.connection
import h2.events
import h2.exceptions

Headers = Sequence[tuple[str, str]]


class Http2:
    """One connection. ``asked`` gives the status; 0: the stream was reset, or the connection ended."""

    def __init__(self, host: str, port: int, timeout_s: float = 10.0) -> None:
        self.authority = f"{host}:{port}"
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection((host, port), timeout=timeout_s)
        self.socket = context.wrap_socket(plain, server_hostname=host)
        assert self.socket.selected_alpn_protocol() == "h2"
        config = h2.config.H2Configuration(
            client_side=True,
            header_encoding="utf-8",
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
            validate_inbound_headers=False,
        )
        self.h2 = h2.connection.H2Connection(config)
        self.h2.initiate_connection()
        self.flush()
        self.ended = False

    def __enter__(self) -> Http2:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def flush(self) -> None:
        self.socket.sendall(self.h2.data_to_send())

    def asked(self, headers: Headers) -> int:
        """One request without a body."""
        stream = self.h2.get_next_available_stream_id()
        try:
            self.h2.send_headers(stream, headers, end_stream=True)
            self.flush()
            status = 0
            while True:
                for event in self.received():
                    mine = getattr(event, "stream_id", None) == stream
                    if isinstance(event, h2.events.ResponseReceived) and mine:
                        status = int(dict(event.headers)[":status"])
                    if isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)) and mine:
                        return status
                if self.ended:
                    return status
        except OSError:
            self.ended = True
            return 0

    def received(self) -> list[h2.events.Event]:
        """What has come, waiting for something; ``ended`` when there will be no more."""
        try:
            data = self.socket.recv(65536)
        except OSError:
            data = b""
        if not data:
            self.ended = True
            return []
        try:
            events = self.h2.receive_data(data)
            self.flush()
        except (h2.exceptions.ProtocolError, OSError):
            self.ended = True
            return []
        self.ended = self.ended or any(isinstance(e, h2.events.ConnectionTerminated) for e in events)
        return events
