"""Closed-loop load beside a test: a process of its own, told to end by a file.

Decides only where the generator's command line comes from; what is counted is ``closed_loop``'s.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

GENERATOR = Path(__file__).with_name("closed_loop.py")


@dataclass(frozen=True)
class Client:
    """One kind of client. ``headers``: lines; ``expect``: what each whole answer must contain."""

    name: str
    path: str
    body: bytes
    connections: int = 2
    think_ms: float = 0.0
    headers: Sequence[str] = ()
    expect: str = ""


@dataclass
class Load:
    """``results``: what each client saw, by name; there when the load has ended. ``counts``: files
    that say how many answers each has had so far."""

    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    counts: Sequence[Path] = ()

    @property
    def answered(self) -> int:
        """Of all clients so far. A file is not there until it is written first, and empty while it
        is written."""
        return sum(int(file.read_text() or 0) for file in self.counts if file.exists())

    @property
    def requests(self) -> int:
        return sum(result["requests"] for result in self.results.values())

    @property
    def failed(self) -> dict[str, Any]:
        """What those clients saw that did not get every answer."""
        return {name: result for name, result in self.results.items() if result["failed"]}


@contextmanager
def load(
    base_url: str, cafile: Path, key: str, directory: Path, clients: Sequence[Client], *, at_least: int = 0
) -> Iterator[Load]:
    """All ``clients`` at once until the block ends and they have had ``at_least`` answers,
    together."""
    directory.mkdir(parents=True, exist_ok=True)
    end = directory / "end"
    counts = {client.name: directory / f"{client.name}.count" for client in clients}
    for file in (end, *counts.values()):
        file.unlink(missing_ok=True)
    running = Load(counts=tuple(counts.values()))
    with ExitStack() as stack:
        processes = {}
        for client in clients:
            body = directory / f"{client.name}.body"
            body.write_bytes(client.body)
            command = [
                *(sys.executable, str(GENERATOR), "--json", "--url", base_url + client.path, "--cafile", str(cafile)),
                *("--connections", str(client.connections), "--think-ms", str(client.think_ms)),
                *("--until-file", str(end), "--count-file", str(counts[client.name]), "--body-file", str(body)),
                *(w for h in (f"Authorization: Bearer {key}", *client.headers) for w in ("--header", h)),
                *(("--expect", client.expect) if client.expect else ()),
            ]
            processes[client.name] = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        try:
            yield running
            pause = threading.Event()
            while running.answered < at_least and all(p.poll() is None for p in processes.values()):
                pause.wait(0.1)
        finally:
            end.touch()
            running.results = {n: json.loads(p.communicate()[0]) for n, p in processes.items()}
