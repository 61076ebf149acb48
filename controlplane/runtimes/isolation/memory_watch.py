"""The memory that a process and its descendants use, where no control group counts it.

Decides what counts: private memory of each, and shared memory once. Must not know limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def used_bytes(pid: int, proc: Path = Path("/proc")) -> int:
    """0 for a process that has ended."""
    private = shared = 0
    for one in (pid, *descendants(pid, proc)):
        with suppress(OSError, ValueError):
            kib = dict(_sizes((proc / str(one) / "status").read_text(encoding="utf-8", errors="replace")))
            private += kib.get("RssAnon", 0)
            shared = max(shared, kib.get("RssShmem", 0))
    return (private + shared) * 1024


def descendants(pid: int, proc: Path = Path("/proc")) -> Iterator[int]:
    """Asked of each thread, which is much less to read than all processes of the machine."""
    with suppress(OSError):
        for task in (proc / str(pid) / "task").iterdir():
            with suppress(OSError):
                for child in (task / "children").read_text(encoding="ascii").split():
                    yield int(child)
                    yield from descendants(int(child), proc)


def _sizes(status: str) -> Iterator[tuple[str, int]]:
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name in ("RssAnon", "RssShmem"):
            yield name, int(value.split()[0])
