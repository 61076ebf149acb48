"""Model servers that are measured beside ours, with the same ONNX file and the same number of
threads, one worker each.

They get plain HTTP without a key, and the request in the cheapest form that their documentation
shows: raw bytes where a handler gets them, else base64 in JSON. Each is a row here and a program in
``programs/``, which runs in an environment of its own, ``../requirements/PROGRAM.in``:
``PROGRAM PORT THREADS NAME=FILE...``.
"""

from __future__ import annotations

import base64
import importlib.metadata
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench import machine

_PROGRAMS = Path(__file__).parent / "programs"
_START_WITHIN_S = 90


@dataclass(frozen=True, slots=True)
class Peer:
    """``package``: whose version the tables show. ``form``: what a request looks like. ``path``:
    where a model is asked, with its name in it."""

    program: str
    package: str
    form: Literal["raw", "base64", "v2"]
    path: str = "/{model}"


PEERS = {
    "FastAPI + onnxruntime": Peer("fastapi_onnx", "fastapi", "raw"),
    "MLServer": Peer("mlserver_onnx", "mlserver", "v2", "/v2/models/{model}/infer"),
    "LitServe": Peer("litserve_onnx", "litserve", "base64"),
    "BentoML": Peer("bentoml_onnx", "bentoml", "base64"),
    "Ray Serve": Peer("ray_onnx", "ray", "raw"),
}


def onnxruntime() -> str:
    return importlib.metadata.version("onnxruntime")


def body(form: str, tensor: bytes) -> bytes:
    """The tensor's bytes as this kind of server takes them."""
    if form == "raw":
        return tensor
    text = base64.b64encode(tensor).decode()
    if form == "base64":
        return json.dumps({"x": text}).encode()
    one = {"name": "x", "shape": [1], "datatype": "BYTES", "data": [text], "parameters": {"content_type": "base64"}}
    return json.dumps({"inputs": [one]}).encode()


@dataclass(frozen=True, slots=True)
class Running:
    """A started peer. ``pid``: it and what it started is what its CPU is counted by."""

    port: int
    pid: int
    version: str


@contextmanager
def started(peer: Peer, work: Path, models: dict[str, Path], threads: int) -> Iterator[Running]:
    """Raises Unavailable when it cannot be installed or does not start."""
    env = machine.environment(peer.program)
    port = machine.free_port()
    command: list[str | Path] = [env / "bin" / "python", _PROGRAMS / f"{peer.program}.py", str(port), str(threads)]
    command += [f"{name}={path}" for name, path in models.items()]
    work.mkdir(parents=True, exist_ok=True)
    # Nobody phones home, and nothing is written outside of the work folder.
    environment = {
        **os.environ, "HOME": str(work), "PATH": f"{env / 'bin'}:{os.environ.get('PATH', os.defpath)}",
        "BENTOML_DO_NOT_TRACK": "True", "BENTOML_HOME": str(work), "RAY_USAGE_STATS_ENABLED": "0",
        "OMP_NUM_THREADS": str(threads), "PYTHONUNBUFFERED": "1",
    }  # fmt: skip
    log = work / "output.log"
    with machine.running(command, log, port=port, env=environment, cwd=work, within_s=_START_WITHIN_S) as process:
        yield Running(port, process.pid, machine.version_of(env, peer.package))
