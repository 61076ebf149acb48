"""A closed-loop HTTPS load generator: N connections, each sends its next request when it has the
last answer.

Decides how a request is counted. Every request is sent once: an answer counts by its status,
anything else (refused, reset, cut off, late, not HTTP) counts as a connection error, and both kinds
of failure are reported. Nothing is retried, so "0 failed" means that no request was lost. An answer
with ``connection: close`` is an answer; the next request then uses a new connection, which is
counted under ``reconnects``. Must not know what it calls: it is given a URL, headers and a body.

It speaks HTTP/1.1 over plain sockets because it shares the machine with what it measures: one
thread per connection, one write and mostly one read per request, and no parsing beyond what is
counted.

    python tests/load/closed_loop.py --url https://127.0.0.1:9443/endpoints/e/v2/models/m/infer \\
        --header 'Authorization: Bearer KEY' --body-file request.json \\
        --connections 8 --requests 100000 --json

It ends after ``--requests``, or as soon as the file of ``--until-file`` exists; with both, when
both hold. Exit code: 0 when no request failed, else 1.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import socket
import ssl
import sys
import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

#: How many failures are reported in full.
_SHOWN_FAILURES = 5
#: Pause after a connection error, so that a dead server is not hammered by eight threads.
_PAUSE_S = 0.02
#: How often the count is written.
_COUNT_S = 0.2


class NotHttp(Exception):
    """The peer closed the connection within or before an answer, or did not answer in HTTP/1.1."""


@dataclass(slots=True)
class Tally:
    """What one connection saw. Latencies in seconds, of answered requests."""

    statuses: Counter[int] = field(default_factory=Counter)
    deployments: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    latencies: array[float] = field(default_factory=lambda: array("d"))
    reconnects: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)

    def fail(self, at_s: float, what: str, body: bytes = b"") -> None:
        if len(self.failures) < _SHOWN_FAILURES:
            self.failures.append({"at_s": round(at_s, 3), "what": what, "body": body[:300].decode("latin-1")})


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    deployment: str
    close: bool
    body: bytes


class Connection:
    """One keep-alive connection. Raises OSError (ssl.SSLError among them) or NotHttp."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None, timeout_s: float) -> None:
        plain = socket.create_connection((host, port), timeout=timeout_s)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._socket = tls.wrap_socket(plain, server_hostname=host) if tls else plain
        except BaseException:
            plain.close()
            raise
        self._unread = b""

    def exchange(self, request: bytes) -> Answer:
        self._socket.sendall(request)
        return self._answer()

    def close(self) -> None:
        self._socket.close()

    def _more(self) -> None:
        received = self._socket.recv(65536)
        if not received:
            raise NotHttp("closed by the peer")
        self._unread += received

    def _until(self, mark: bytes) -> bytes:
        while (end := self._unread.find(mark)) < 0:
            self._more()
        taken, self._unread = self._unread[:end], self._unread[end + len(mark) :]
        return taken

    def _take(self, size: int) -> bytes:
        while len(self._unread) < size:
            self._more()
        taken, self._unread = self._unread[:size], self._unread[size:]
        return taken

    def _answer(self) -> Answer:
        head = self._until(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        if not first.startswith(b"HTTP/1.1 "):
            raise NotHttp(f"not HTTP/1.1: {first[:80]!r}")
        status = int(first[9:12])
        length, chunked, close, deployment = 0, False, False, ""
        for line in lines:
            name, _, value = line.partition(b":")
            name = name.lower()
            if name == b"content-length":
                length = int(value)
            elif name == b"transfer-encoding":
                chunked = True
            elif name == b"connection":
                close = value.strip().lower() == b"close"
            elif name == b"azureml-model-deployment":
                deployment = value.strip().decode("latin-1")
        return Answer(status, deployment, close, self._chunks() if chunked else self._take(length))

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self._until(b"\r\n"), 16):
            body += self._take(size)
            self._take(2)
        self._until(b"\r\n")
        return body


def drive(
    tally: Tally,
    connect: Callable[[], Connection],
    request: bytes,
    turns: Iterator[int],
    began: float,
    think_s: float = 0.0,
    expect: bytes = b"",
) -> None:
    """Send ``request`` once for each turn, over one connection at a time, ``think_s`` after each
    answer. An answer without ``expect`` in it counts as a connection error, ``Incomplete``."""
    connection: Connection | None = None
    opened = False
    pause = threading.Event()
    for _ in turns:
        start = time.perf_counter()
        try:
            if connection is None:
                tally.reconnects += opened
                connection, opened = connect(), True
            answer = connection.exchange(request)
        except (OSError, NotHttp, ValueError) as exc:
            tally.errors[type(exc).__name__] += 1
            tally.fail(start - began, f"{type(exc).__name__}: {exc}")
            if connection is not None:
                connection.close()
                connection = None
            pause.wait(_PAUSE_S)
            continue
        tally.latencies.append(time.perf_counter() - start)
        whole = not 200 <= answer.status < 300 or expect in answer.body
        if whole:
            tally.statuses[answer.status] += 1
        else:
            tally.errors["Incomplete"] += 1
            tally.fail(start - began, "Incomplete", answer.body)
        if answer.deployment:
            tally.deployments[answer.deployment] += 1
        if not 200 <= answer.status < 300:
            tally.fail(start - began, f"status {answer.status}", answer.body)
        if answer.close:
            connection.close()
            connection = None
        if think_s:
            pause.wait(think_s)
    if connection is not None:
        connection.close()


def request_bytes(url: str, headers: list[str], body: bytes | None) -> bytes:
    """One HTTP/1.1 request: POST with a body, else GET. ``headers`` are ``Name: value`` lines."""
    address = urlsplit(url)
    path = (address.path or "/") + (f"?{address.query}" if address.query else "")
    lines = [f"{'GET' if body is None else 'POST'} {path} HTTP/1.1", f"Host: {address.netloc}", *headers]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")


def report(tallies: list[Tally], seconds: float) -> dict[str, Any]:
    """All connections together. Latencies in milliseconds; ``failed`` counts connection errors and
    statuses but 2xx."""
    statuses: Counter[int] = sum((t.statuses for t in tallies), Counter())
    errors: Counter[str] = sum((t.errors for t in tallies), Counter())
    latencies = sorted(itertools.chain.from_iterable(t.latencies for t in tallies))
    requests = statuses.total() + errors.total()

    def percentile(share: float) -> float | None:
        return round(latencies[int(share * (len(latencies) - 1))] * 1000, 3) if latencies else None

    return {
        "requests": requests,
        "failed": requests - sum(count for status, count in statuses.items() if 200 <= status < 300),
        "seconds": round(seconds, 3),
        "requests_per_s": round(requests / seconds, 1),
        "statuses": {str(status): count for status, count in sorted(statuses.items())},
        "deployments": dict(sorted(sum((t.deployments for t in tallies), Counter[str]()).items())),
        "connection_errors": dict(sorted(errors.items())),
        "reconnects": sum(t.reconnects for t in tallies),
        "latency_ms": {"p50": percentile(0.5), "p99": percentile(0.99), "max": percentile(1.0)},
        "failures": sorted(itertools.chain.from_iterable(t.failures for t in tallies), key=lambda f: f["at_s"])[
            :_SHOWN_FAILURES
        ],
    }


def _write_count(file: Path | None, tallies: Sequence[Tally]) -> None:
    if file is not None:
        file.write_text(str(sum(len(tally.latencies) for tally in tallies)))


def turns_until(path: Path, turns: Iterator[int], at_least: int) -> Iterator[int]:
    """Turns until ``path`` exists and there have been ``at_least`` of them; ``turns`` is shared by
    all connections."""
    return itertools.takewhile(lambda turn: turn < at_least or not path.exists(), turns)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    address = urlsplit(arguments.url)
    secure = address.scheme == "https"
    tls = ssl.create_default_context(cafile=arguments.cafile) if secure else None
    host, port = address.hostname or "", address.port or (443 if secure else 80)
    body = arguments.body_file.read_bytes() if arguments.body_file else None
    request = request_bytes(arguments.url, arguments.header, body)
    # One budget for all connections: next() on these iterators is atomic in CPython.
    least = arguments.requests or 0
    budget = itertools.count() if arguments.until_file else iter(range(least))
    tallies = [Tally() for _ in range(arguments.connections)]
    began = time.perf_counter()
    threads = [
        threading.Thread(
            target=drive,
            args=(
                tally,
                lambda: Connection(host, port, tls, arguments.timeout_s),
                request,
                turns_until(arguments.until_file, budget, least) if arguments.until_file else budget,
                began,
                arguments.think_ms / 1000,
                arguments.expect.encode(),
            ),
        )
        for tally in tallies
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        for thread in threads:
            thread.join(_COUNT_S / len(threads))
        _write_count(arguments.count_file, tallies)
    _write_count(arguments.count_file, tallies)  # The last one may have ended since.
    return report(tallies, time.perf_counter() - began)


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Closed-loop HTTPS load, every request counted once.")
    parser.add_argument("--url", required=True)
    parser.add_argument("--header", action="append", default=[], metavar="'Name: value'")
    parser.add_argument("--body-file", type=Path, help="POST this; without it GET")
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--requests", type=int, help="end after so many, over all connections")
    parser.add_argument("--until-file", type=Path, help="end when this file exists")
    parser.add_argument("--count-file", type=Path, help="holds how many requests have been answered so far")
    parser.add_argument("--think-ms", type=float, default=0.0, help="pause of a connection after each answer")
    parser.add_argument("--expect", default="", help="text that the body of every 2xx answer must contain")
    parser.add_argument("--timeout-s", type=float, default=30.0, help="per read and write")
    parser.add_argument("--cafile", default=os.environ.get("SSL_CERT_FILE"), help="default: SSL_CERT_FILE")
    parser.add_argument("--json", action="store_true", help="print one JSON object rather than a line")
    given = parser.parse_args(argv)
    if given.requests is None and given.until_file is None:
        parser.error("--requests or --until-file says when it ends")
    return given


def main(argv: list[str]) -> int:
    arguments = parse(argv)
    result = run(arguments)
    if arguments.json:
        print(json.dumps(result))
    else:
        print(
            "{requests} requests, {failed} failed, {requests_per_s}/s, p50 {latency_ms[p50]} ms, "
            "p99 {latency_ms[p99]} ms, {statuses}, {deployments}, {reconnects} reconnects".format(**result)
        )
    return 1 if result["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
