"""Downloads the files of one model into a directory.

Decides how a broken transfer continues (at the byte where it broke, with new addresses when the old
ones have expired), how long it is tried, and that only files with the right digest are accepted.
Must not know caches and locks.
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

from amphitrite.dataplane.fetch.fetch_failure import FetchFailure, disk_failures
from amphitrite.dataplane.fetch.http_client import AccessRefused, HttpClient, Response, TransientFailure, reason
from amphitrite.dataplane.fetch.manifest import File, Manifest

#: Files that are downloaded at once.
THREADS = 4
_CHUNK = 1024 * 1024
#: Seconds before the second attempt. The pause doubles each time, up to the longest.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 8.0


class _Stopped(Exception):
    """Another thread has failed. Its failure is the one that counts."""


class Download:
    """The download of one model.

    ``ask`` lists the files with fresh addresses; it raises TransientFailure, AccessRefused or
    FetchFailure. ``stall_timeout_s``: how long to go on without a new byte.
    """

    def __init__(self, http: HttpClient, ask: Callable[[], Manifest], stall_timeout_s: float) -> None:
        self._http, self._ask, self._stall_timeout_s = http, ask, stall_timeout_s
        self._urls: dict[str, str] = {}
        self._refresh_lock = threading.Lock()
        self._stop = threading.Event()
        self._progress = time.monotonic()

    def manifest(self) -> Manifest:
        """Ask until there is a list. Raises FetchFailure."""
        pauses = _backoff()
        while True:
            try:
                manifest = self._ask()
            except TransientFailure as failure:
                self._pause(next(pauses), f"the control plane does not answer: {failure}")
            except AccessRefused as refusal:
                raise _no_model(refusal) from None
            else:
                self._urls = {file.digest: file.url for file in manifest.files}
                return manifest

    def fetch_into(self, tree: Path, parts: Path, manifest: Manifest) -> None:
        """Bring every file into ``tree``, complete and on the disk. Unfinished files are in
        ``parts``. What an earlier attempt for the same model left in both is used. Raises
        FetchFailure."""
        with disk_failures(tree):
            for directory in {(tree / file.path).parent for file in manifest.files} | {parts}:
                directory.mkdir(mode=0o755, parents=True, exist_ok=True)
            for name in manifest.empty_directories:
                (tree / name).mkdir(mode=0o755, parents=True, exist_ok=True)
        numbered = list(enumerate(sorted(manifest.files, key=lambda file: file.path)))
        # Large files first, so that none of them is left to a single thread at the end.
        numbered.sort(key=lambda pair: -pair[1].size)
        self._progress = time.monotonic()
        with ThreadPoolExecutor(THREADS, thread_name_prefix="fetch") as pool:
            running = [pool.submit(self._file, file, tree / file.path, parts / str(n)) for n, file in numbered]
            try:
                wait(running, return_when=FIRST_EXCEPTION)
            finally:
                self._stop.set()
                pool.shutdown(cancel_futures=True)
        failures = [error for future in running if not future.cancelled() and (error := future.exception()) is not None]
        for error in failures:
            if not isinstance(error, _Stopped):
                raise error

    def _file(self, file: File, target: Path, part: Path) -> None:
        with disk_failures(target.parent):
            if target.exists():
                return  # It got its name after it was checked and on the disk.
            for _ in range(2):
                if self._fetch(file, part) == file.digest:
                    part.chmod(0o444)
                    part.rename(target)
                    return
                part.unlink()
        hint = "the model store's copy is damaged, or something changes it on the way: upload the model again"
        raise FetchFailure(f"{file.path} is damaged on arrival: its SHA-256 is not {file.digest}", hint)

    def _fetch(self, file: File, part: Path) -> str:
        """Bring ``part`` to its full length. The digest of its content."""
        with part.open("a+b") as out:
            out.seek(0)
            sha256 = hashlib.sha256()
            while data := out.read(_CHUNK):
                sha256.update(data)
            self._progress = time.monotonic()
            pauses = _backoff()
            while out.tell() < file.size:
                before, url = out.tell(), self._urls[file.digest]
                try:
                    response, first = self._http.open(url, before)
                    with response:
                        if first != before:
                            out.seek(0)
                            out.truncate()
                            sha256 = hashlib.sha256()
                        self._copy(response, out, file.size, sha256.update)
                except AccessRefused as refusal:
                    self._refresh(file, url)
                    self._pause(next(pauses), f"{file.path}: {refusal}")
                except TransientFailure as failure:
                    if out.tell() > before:
                        pauses = _backoff()
                    self._pause(next(pauses), f"{file.path}: {failure}")
            out.flush()
            os.fsync(out.fileno())
        return sha256.hexdigest()

    def _copy(self, response: Response, out: BufferedRandom, size: int, update: Callable[[bytes], None]) -> None:
        """Raises TransientFailure when the response ends before ``size`` bytes are there."""
        while left := size - out.tell():
            if self._stop.is_set():
                raise _Stopped
            try:
                data = response.read(min(_CHUNK, left))
            except (OSError, HTTPException) as exc:
                raise TransientFailure(
                    f"the transfer broke off at byte {out.tell()} of {size}: {reason(exc)}"
                ) from None
            if not data:
                raise TransientFailure(f"the transfer ended at byte {out.tell()} of {size}")
            out.write(data)
            update(data)
            self._progress = time.monotonic()

    def _refresh(self, file: File, stale: str) -> None:
        """Get new addresses for all files, unless another thread has just done so."""
        with self._refresh_lock:
            if self._urls[file.digest] != stale:
                return
            try:
                self._urls = {one.digest: one.url for one in self._ask().files}
            except TransientFailure:
                return  # The pause that follows counts towards the timeout.
            except AccessRefused as refusal:
                raise _no_model(refusal) from None

    def _pause(self, seconds: float, why: str) -> None:
        """Raises FetchFailure when the timeout has passed."""
        if time.monotonic() - self._progress + seconds > self._stall_timeout_s:
            hint = "check the control plane, the object store and the network policies between them and this pod"
            raise FetchFailure(f"gave up after {self._stall_timeout_s:g} s without a byte: {why}", hint)
        print(f"waiting {seconds:.1f} s: {why}", flush=True)
        if self._stop.wait(seconds):
            raise _Stopped


def _no_model(refusal: AccessRefused) -> FetchFailure:
    hint = (
        "the fetch key of the control plane may have changed: restart the deployment" if refusal.status == 401 else ""
    )
    return FetchFailure(f"the control plane refuses the model: {refusal}", hint)


def _backoff() -> Iterator[float]:
    """Seconds before each further attempt, without end, and never the same in two pods."""
    pause = _FIRST_PAUSE_S
    while True:
        yield pause * random.uniform(0.5, 1.0)
        pause = min(2 * pause, _LONGEST_PAUSE_S)
