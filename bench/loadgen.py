"""Load on one address, by ``native/load.c``: closed loop, or fixed rate.

The fixed rate is without coordinated omission. Decides how the generator is called and what its
answer means. Its own limits are part of each result: ``late_p99_us`` is how late it sends a request
at a fixed rate although a connection is free, ``busy`` the share of its core it used.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench import machine

#: A round that fails in more requests than this share is no measurement of anything.
TOLERATED = 0.001


@dataclass(frozen=True, slots=True)
class Load:
    """What one round saw; ``cpu_us``: of the server, for each request."""

    requests: int
    failed: int
    unsent: int
    rps: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    late_p99_ms: float
    busy: float
    cpu_us: float = 0.0

    @property
    def good(self) -> bool:
        return self.requests > 0 and self.failed + self.unsent <= TOLERATED * self.requests

    @property
    def per_core(self) -> float:
        """Requests for each second of the server's CPU."""
        return 1e6 / self.cpu_us if self.cpu_us else 0.0

    def costing(self, cpu_s: float) -> Load:
        """The same with the CPU of processes that were counted elsewhere."""
        return replace(self, cpu_us=cpu_s / self.requests * 1e6 if self.requests else 0.0)


@dataclass(frozen=True, slots=True)
class Generator:
    """Where requests go. ``pid``: whose CPU is counted, with the processes below it; None:
    nobody's. ``host``: or the path of a UNIX socket, which needs no port."""

    port: int
    tls: bool = False
    pid: int | None = None
    cores: Sequence[int] = ()
    host: str = "127.0.0.1"

    def run(self, request: Path, connections: int, seconds: float, rate: float = 0) -> Load:
        """``rate`` 0: closed loop. Raises CalledProcessError when nobody answers at all."""
        command = [
            machine.compiled("load", "ssl", "crypto"), self.host, str(self.port), "tls" if self.tls else "plain",
            str(connections), str(seconds), str(rate), str(request),
        ]  # fmt: skip
        if self.cores:
            command = ["taskset", "-c", ",".join(map(str, self.cores)), *command]
        before = machine.cpu_seconds(self.pid) if self.pid is not None else 0.0
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=seconds + 60)
        after = machine.cpu_seconds(self.pid) if self.pid is not None else 0.0
        return read(json.loads(done.stdout), after - before)


def read(seen: dict[str, Any], cpu_s: float) -> Load:
    """The generator's answer in the units of the tables."""
    requests, seconds = int(seen["requests"]), float(seen["seconds"])
    return Load(
        requests=requests,
        failed=int(seen["failed"]),
        unsent=int(seen["unsent"]),
        rps=requests / seconds if seconds else 0.0,
        p50_ms=seen["p50_us"] / 1000,
        p99_ms=seen["p99_us"] / 1000,
        max_ms=seen["max_us"] / 1000,
        late_p99_ms=seen["late_p99_us"] / 1000,
        busy=float(seen["cpu_s"]) / seconds if seconds else 0.0,
        cpu_us=cpu_s / requests * 1e6 if requests else 0.0,
    )


def request_file(path: Path, target: str, headers: Sequence[str], body: bytes) -> Path:
    """One POST as it is sent."""
    lines = [f"POST {target} HTTP/1.1", "Host: 127.0.0.1", *headers, f"Content-Length: {len(body)}", "", ""]
    path.write_bytes("\r\n".join(lines).encode() + body)
    return path
