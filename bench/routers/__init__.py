"""Proxies that are measured beside ours, all with the same rule: this bearer key, else 401; of 100
requests 90 go to the first upstream and 10 to the second.

Each module has ``serve(place) -> Iterator[Server]``: one proxy with one worker, for the length of a
block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

KEY = "0123456789abcdef0123456789abcdef"
TARGET = "/endpoints/images/v2/models/m/infer"
#: As `tritonclient` sends tensors: a little JSON, then binary data.
HEADERS = (
    f"Authorization: Bearer {KEY}",
    "Content-Type: application/octet-stream",
    "Inference-Header-Content-Length: 200",
)
#: Percent of the first upstream.
SHARE = 90


@dataclass(frozen=True, slots=True)
class Place:
    """Where a proxy runs: a directory and a port of its own, its cores, the two upstreams behind
    it, and the files of its certificate; None: plain HTTP. ``sockets``: where the upstreams listen
    too."""

    work: Path
    port: int
    cores: Sequence[int]
    upstreams: tuple[int, int]
    certificate: tuple[Path, Path] | None
    sockets: tuple[Path, Path] | None = None

    @property
    def log(self) -> Path:
        return self.work / "output.log"


@dataclass(frozen=True, slots=True)
class Server:
    """What listens on ``port``; the CPU of ``pid`` and of those it started is what it costs. None:
    nothing is there. ``agent``: the pid of a process that it asks about requests."""

    port: int
    pid: int | None
    version: str
    tls: bool = False
    agent: int | None = None
