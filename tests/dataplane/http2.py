"""An HTTP/2 client that sends what no decent one would: nothing is judged or tidied up before it
goes out."""

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


#: As many streams as Envoy takes on one connection are more.
_AT_ONCE = 100


class Http2:
    """One connection. ``asked`` gives the status; 0: the stream was reset, or the connection ended.
    ``name``: what the host is called, where that is not its address."""

    def __init__(self, host: str, port: int, timeout_s: float = 10.0, name: str | None = None) -> None:
        self.authority = f"{name or host}:{port}"
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection((host, port), timeout=timeout_s)
        self.socket = context.wrap_socket(plain, server_hostname=name or host)
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
        return int(self.answers([headers])[0].get(":status", "0"))

    def answers(self, requests: Sequence[Headers], body: bytes | None = None) -> list[dict[str, str]]:
        """Header and trailer of each answer, to requests that are sent at once; empty where there
        is none."""
        found: dict[int, dict[str, str]] = {}
        try:
            for headers in requests:
                stream = self.h2.get_next_available_stream_id()
                self.h2.send_headers(stream, headers, end_stream=body is None)
                if body is not None:
                    self.h2.send_data(stream, body, end_stream=True)
                found[stream] = {}
            self.flush()
            left = set(found)
            while left and not self.ended:
                for event in self.received():
                    stream = getattr(event, "stream_id", None) or 0
                    if isinstance(event, (h2.events.ResponseReceived, h2.events.TrailersReceived)):
                        found[stream].update(event.headers)
                    if isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)):
                        left.discard(stream)
        except OSError:
            self.ended = True
        answers = list(found.values())
        return answers + [{} for _ in requests[len(answers) :]]

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


def all_answers(
    host: str, port: int, requests: Sequence[Headers], body: bytes | None = None, name: str | None = None
) -> list[dict[str, str]]:
    """``Http2.answers`` to however many, on as few connections as it takes: where one ends,
    whatever it has left unanswered is asked again alone."""
    answers: list[dict[str, str]] = []
    connection = Http2(host, port, name=name)
    for first in range(0, len(requests), _AT_ONCE):
        answers += connection.answers(requests[first : first + _AT_ONCE], body)
        if connection.ended:
            connection.socket.close()
            connection = Http2(host, port, name=name)
    connection.socket.close()
    for index in [index for index, answer in enumerate(answers) if not answer]:
        with Http2(host, port, name=name) as alone:
            [answers[index]] = alone.answers([requests[index]], body)
    return answers
