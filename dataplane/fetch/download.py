"""The files of one model, into a directory.

Decides how a broken transfer goes on (from the byte where it broke, with new addresses when the old ones have expired),
how long it is tried, and that nothing is taken that has not the right digest. Must not know caches and locks.
"""

from __future__ import annotations

import hashlib
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from http.client import HTTPException
from io import BufferedRandom
from pathlib import Path

from amphitrite.dataplane.fetch.fetch_failure import Problem, disk_problems
from amphitrite.dataplane.fetch.http_client import Answer, Passing, Refused, Web, reason
from amphitrite.dataplane.fetch.manifest import File, Manifest

#: Files that are fetched at once.
THREADS = 4
_CHUNK = 1024 * 1024
#: Seconds before the second try, doubled each time up to the longest.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 8.0


class _Stopped(Exception):
    """Another thread has failed; what it says is what counts."""


class Download:
    """One model, once. ``ask`` lists the files with fresh addresses; it raises Passing, Refused or Problem.
    ``patience_s``: how long to go on without a new byte."""

    def __init__(self, web: Web, ask: Callable[[], Manifest], patience_s: float) -> None:
        self._web, self._ask, self._patience_s = web, ask, patience_s
        self._urls: dict[str, str] = {}
        self._asking = threading.Lock()
        self._stop = threading.Event()
        self._progress = time.monotonic()

    def manifest(self) -> Manifest:
        """Ask until there is an answer. Raises Problem."""
        pauses = _pauses()
        while True:
            try:
                found = self._ask()
            except Passing as passing:
                self._pause(next(pauses), f"the control plane does not answer: {passing}")
            except Refused as refused:
                raise _no_model(refused) from None
            else:
                self._urls = {file.digest: file.url for file in found.files}
                return found

    def into(self, tree: Path, parts: Path, manifest: Manifest) -> None:
        """Every file in ``tree``, complete and on the disk. What is not complete lies in ``parts``; what an earlier try
        for the same model left in the two is gone on with. Raises Problem."""
        with disk_problems(tree):
            for directory in {(tree / file.path).parent for file in manifest.files} | {parts}:
                directory.mkdir(mode=0o755, parents=True, exist_ok=True)
            for name in manifest.empty_directories:
                (tree / name).mkdir(mode=0o755, parents=True, exist_ok=True)
        numbered = list(enumerate(sorted(manifest.files, key=lambda file: file.path)))
        # Large ones first, so that none of them is left to a single thread at the end.
        numbered.sort(key=lambda pair: -pair[1].size)
        self._progress = time.monotonic()
        with ThreadPoolExecutor(THREADS, thread_name_prefix="fetch") as pool:
            running = [pool.submit(self._file, file, tree / file.path, parts / str(n)) for n, file in numbered]
            try:
                wait(running, return_when=FIRST_EXCEPTION)
            finally:
                self._stop.set()
                pool.shutdown(cancel_futures=True)
        failures = [error for one in running if not one.cancelled() and (error := one.exception()) is not None]
        for error in failures:
            if not isinstance(error, _Stopped):
                raise error

    def _file(self, file: File, target: Path, part: Path) -> None:
        with disk_problems(target.parent):
            if target.exists():
                return  # It got its name after it had been checked and was on the disk.
            for _ in range(2):
                if self._fetch(file, part) == file.digest:
                    part.chmod(0o444)
                    part.rename(target)
                    return
                part.unlink()
        hint = "what the model store holds is damaged, or something changes it on the way; upload the model again"
        raise Problem(f"{file.path} arrives damaged: its SHA-256 is not {file.digest}", hint)

    def _fetch(self, file: File, part: Path) -> str:
        """Bring ``part`` to its full length; the digest of what it then holds."""
        with part.open("a+b") as out:
            out.seek(0)
            sha256 = hashlib.sha256()
            while data := out.read(_CHUNK):
                sha256.update(data)
            self._progress = time.monotonic()
            pauses = _pauses()
            while out.tell() < file.size:
                before, url = out.tell(), self._urls[file.digest]
                try:
                    answer, first = self._web.open(url, before)
                    with answer:
                        if first != before:
                            out.seek(0)
                            out.truncate()
                            sha256 = hashlib.sha256()
                        self._copy(answer, out, file.size, sha256.update)
                except Refused as refused:
                    self._refresh(file, url)
                    self._pause(next(pauses), f"{file.path}: {refused}")
                except Passing as passing:
                    if out.tell() > before:
                        pauses = _pauses()
                    self._pause(next(pauses), f"{file.path}: {passing}")
            out.flush()
            os.fsync(out.fileno())
        return sha256.hexdigest()

    def _copy(self, answer: Answer, out: BufferedRandom, size: int, update: Callable[[bytes], None]) -> None:
        """Raises Passing when the answer ends before ``size`` bytes are there."""
        while left := size - out.tell():
            if self._stop.is_set():
                raise _Stopped
            try:
                data = answer.read(min(_CHUNK, left))
            except (OSError, HTTPException) as exc:
                raise Passing(f"the transfer broke off at byte {out.tell()} of {size}: {reason(exc)}") from None
            if not data:
                raise Passing(f"the transfer ended at byte {out.tell()} of {size}")
            out.write(data)
            update(data)
            self._progress = time.monotonic()

    def _refresh(self, file: File, stale: str) -> None:
        """New addresses for all files, unless another thread has just fetched them."""
        with self._asking:
            if self._urls[file.digest] != stale:
                return
            try:
                self._urls = {one.digest: one.url for one in self._ask().files}
            except Passing:
                return  # The pause that follows counts on.
            except Refused as refused:
                raise _no_model(refused) from None

    def _pause(self, seconds: float, why: str) -> None:
        """Raises Problem when patience is at an end."""
        if time.monotonic() - self._progress + seconds > self._patience_s:
            hint = "look at the control plane, the object store and the network policies between them and this pod"
            raise Problem(f"gave up after {self._patience_s:g} s without a byte: {why}", hint)
        print(f"waiting {seconds:.1f} s: {why}", flush=True)
        if self._stop.wait(seconds):
            raise _Stopped


def _no_model(refused: Refused) -> Problem:
    hint = (
        "the fetch key of the control plane may have changed: restart the deployment" if refused.status == 401 else ""
    )
    return Problem(f"the control plane refuses the model: {refused}", hint)


def _pauses() -> Iterator[float]:
    """Seconds before each further try, without end, never the same in two pods."""
    pause = _FIRST_PAUSE_S
    while True:
        yield pause * random.uniform(0.5, 1.0)
        pause = min(2 * pause, _LONGEST_PAUSE_S)
