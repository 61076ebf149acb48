"""Proxies written in Python: ``programs/``, each in an environment of its own,
``../requirements/PROGRAM.in``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import machine
from bench.routers import KEY, SHARE, Place, Server

_PROGRAMS = Path(__file__).parent / "programs"


@contextmanager
def aiohttp(place: Place) -> Iterator[Server]:
    with _serve(place, "aiohttp_proxy", "aiohttp") as server:
        yield server


@contextmanager
def fastapi(place: Place) -> Iterator[Server]:
    with _serve(place, "fastapi_proxy", "fastapi") as server:
        yield server


@contextmanager
def _serve(place: Place, program: str, package: str) -> Iterator[Server]:
    env = machine.environment(program)
    command = [
        env / "bin" / "python", _PROGRAMS / f"{program}.py", str(place.port), *map(str, place.upstreams),
        KEY, str(SHARE), *(place.certificate or ()),
    ]  # fmt: skip
    with machine.running(command, place.log, on=place.cores, port=place.port) as process:
        version = machine.version_of(env, package)
        yield Server(place.port, process.pid, version, place.certificate is not None)
