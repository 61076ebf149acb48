"""Proxies written in Python: ``programs/``, each in an environment of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import machine
from bench.routers import KEY, SHARE, Place, Server

_PROGRAMS = Path(__file__).parent / "programs"


@contextmanager
def aiohttp(place: Place) -> Iterator[Server]:
    with _serve(place, "aiohttp_proxy", "aiohttp", "uvloop") as server:
        yield server


@contextmanager
def fastapi(place: Place) -> Iterator[Server]:
    with _serve(place, "fastapi_proxy", "fastapi", "httpx", "uvicorn[standard]") as server:
        yield server


@contextmanager
def _serve(place: Place, program: str, *packages: str) -> Iterator[Server]:
    env = machine.environment(program.replace("_", "-"), *packages)
    command = [
        env / "bin" / "python", _PROGRAMS / f"{program}.py", str(place.port), *map(str, place.upstreams),
        KEY, str(SHARE), *(place.certificate or ()),
    ]  # fmt: skip
    with machine.running(command, place.log, on=place.cores, port=place.port) as process:
        version = machine.version_of(env, packages[0])
        yield Server(place.port, process.pid, version, place.certificate is not None)
