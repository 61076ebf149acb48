"""A disk without room for an upload: it is said, nothing of it stays, and what fits is taken."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .conftest import BLOBS, opened
from .test_upload_attacks import XML, nothing_changes, refused


@contextmanager
def small_disk(directory: Path, megabytes: int) -> Iterator[None]:
    """A file system of that size there, or where mounting is not allowed files of at most that size
    everywhere."""
    directory.mkdir(parents=True, mode=0o700, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0700", "tmpfs", str(directory)]
    if os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0:
        try:
            yield
        finally:
            subprocess.run(["umount", "--lazy", str(directory)], check=True)
        return
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (megabytes * 1024**2, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with small_disk(home / "models", 2), opened(home) as world:
        pieces = [os.urandom(500_000) for _ in range(10)]
        with nothing_changes(world):
            for query in ("", "?comp=block&blockid=MQ%3D%3D"):
                answer = world.client.put(f"{BLOBS}/full{query}", content=iter(pieces), headers=XML)
                refused(answer, 503, "ServerBusy")
                assert "no space left for model files" in answer.text
            assert world.client.head(f"{BLOBS}/full").status_code == 404
        # What was refused holds no room: a file that fits is taken.
        assert world.client.put(f"{BLOBS}/fits", content=pieces[0], headers=XML).status_code == 201
        assert world.client.get(f"{BLOBS}/fits").content == pieces[0]
