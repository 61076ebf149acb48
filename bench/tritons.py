"""One Triton with the product's command line and backends, without the router.

Decides how it is started and when it is ready. Must not know models.
"""

from __future__ import annotations

import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from amphitrite.dataplane.table.routing_table import Address
from amphitrite.dataplane.triton import backend_directory, command_line, installation, native_backend
from amphitrite.schemas.errors import Error
from bench import machine
from bench.product import Unavailable

_READY_WITHIN_S = 60


@dataclass(frozen=True, slots=True)
class Triton:
    port: int
    pid: int

    @property
    def memory_mb(self) -> float:
        """Of the server and its stubs."""
        return machine.memory_mb(self.pid)


def write_model(repository: Path, name: str, files: Mapping[str, Path | str], config: str = "") -> None:
    """A model of one version. ``files``: by name, to be copied or written; ``config``:
    config.pbtxt, where given."""
    version = repository / name / "1"
    version.mkdir(parents=True)
    for file, source in files.items():
        if isinstance(source, Path):
            shutil.copy2(source, version / file)
        else:
            (version / file).write_text(source)
    if config:
        (repository / name / "config.pbtxt").write_text(config)


@contextmanager
def running(work: Path, repository: Path, on: Sequence[int] = (), form: str = "auto") -> Iterator[Triton]:
    """Ready when the block begins. ``form`` of our onnxruntime backend: auto, native or python.
    Raises Unavailable."""
    try:
        found = installation.locate(os.environ)
        backends = backend_directory.prepare(found, work / "backends", {**os.environ, native_backend.VARIABLE: form})
    except Error as error:
        raise Unavailable(f"{error.message} ({error.hint})") from None
    port = machine.free_port()
    prefix = f"bench{port}_"
    options = command_line.Options(repository, backends, Address("127.0.0.1", port), prefix, 5)
    environment = command_line.environment(
        found, os.environ, marker=str(work), cores=len(on or machine.cores()), gpus=False, variables={}
    )
    log = work / f"triton-{port}.log"
    try:
        with machine.running(
            command_line.arguments(found, options), log, on=on, port=port, env=environment, within_s=_READY_WITHIN_S
        ) as process:
            _await_ready(port, log)
            yield Triton(port, process.pid)
    finally:
        for region in Path("/dev/shm").glob(f"{prefix}*"):
            region.unlink(missing_ok=True)


def _await_ready(port: int, log: Path) -> None:
    deadline = time.monotonic() + _READY_WITHIN_S
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass
        if time.monotonic() > deadline:
            raise Unavailable(f"Triton is not ready: {log.read_text(errors='replace')[-400:]}")
        time.sleep(0.02)
