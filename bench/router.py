"""The router and alternatives: CPU per request, added latency, with and without TLS.

Ours is the agent with its Envoy; bare Envoy is the same binary with the least configuration; nginx,
HAProxy, aiohttp and FastAPI with httpx do the same: one key, a 90/10 split. One worker each, on a
core of its own where there are two. ``direct`` is the upstream without a proxy, in plain HTTP also
in the tables with TLS. ``ours, sockets`` has upstreams on UNIX sockets, as instances on one machine
are.

``--parts`` measures what each part of ours costs: ours without it, against ours.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bench import machine
from bench.loadgen import Generator, Load, request_file
from bench.product import Unavailable
from bench.routers import HEADERS, TARGET, Place, Server, envoy, haproxy, nginx, ours, python
from bench.routers.edits import PARTS
from bench.stats import Goal, Report, differences, middle, paired, spread

Serve = Callable[[Place], AbstractContextManager[Server]]
ROUTERS: dict[str, Serve] = {
    "ours": ours.serve,
    "ours, sockets": ours.on_sockets,
    "envoy": envoy.serve,
    "nginx": nginx.serve,
    "haproxy": haproxy.serve,
    "aiohttp": python.aiohttp,
    "fastapi+httpx": python.fastapi,
}
BODIES = {"1 KB": 1_000, "600 KB": 600_000, "16 MB": 16_000_000}
CONNECTIONS = (1, 8, 32)
#: Open loop: shares of what ours serves at most with that body, and the connections that are at
#: hand.
RATES = (("1 KB", 0.25), ("1 KB", 0.5), ("600 KB", 0.5))
OPEN_CONNECTIONS = 32
WARM_S = 0.2


@dataclass(frozen=True, slots=True)
class Length:
    rounds: int
    seconds: float


FULL, QUICK = Length(3, 1.0), Length(2, 0.3)


@dataclass(frozen=True, slots=True)
class Behind:
    """Where the two upstreams listen."""

    ports: tuple[int, int]
    sockets: tuple[Path, Path]


@dataclass(slots=True)
class Field:
    """All routers at once, idle but for the one that is measured. ``absent``: why one is not
    there."""

    servers: dict[str, Server] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)


@contextmanager
def upstreams(work: Path) -> Iterator[Behind]:
    program = machine.compiled("upstream")
    ports = machine.free_port(), machine.free_port()
    with ExitStack() as stack:
        # A socket's path must be short.
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="amphitrite-bench-")))
        sockets = directory / "first", directory / "second"
        for port, path in zip(ports, sockets, strict=True):
            log, command = work / f"upstream-{port}.log", [program, str(port), str(path)]
            stack.enter_context(machine.running(command, log, on=machine.places()["upstream"], port=port))
        yield Behind(ports, sockets)


@contextmanager
def started(work: Path, routers: dict[str, Serve], tls: bool, behind: Behind) -> Iterator[Field]:
    """Every router that this machine can have."""
    found = Field()
    work.mkdir(exist_ok=True)
    certificate = ours.own_certificate(work) if tls else None
    with ExitStack() as stack:
        for name, serve in routers.items():
            directory = work / name.replace(" ", "-")
            directory.mkdir(parents=True, exist_ok=True)
            place = Place(
                directory, machine.free_port(), machine.places()["proxy"], behind.ports, certificate, behind.sockets
            )
            try:
                found.servers[name] = stack.enter_context(serve(place))
            except Unavailable as exc:
                found.absent[name] = str(exc)
                print(f"{name} is left out: {exc}", flush=True)
        yield found


def requests(work: Path) -> dict[str, Path]:
    return {name: request_file(work / f"{size}.request", TARGET, HEADERS, bytes(size)) for name, size in BODIES.items()}


def aim(server: Server) -> Generator:
    return Generator(server.port, server.tls, server.pid, machine.places()["client"])


def turned(servers: dict[str, Server], number: int) -> list[tuple[str, Server]]:
    """Each round begins with another one: whoever comes first after a pause is not always the
    same."""
    names = list(servers)
    cut = number % len(names)
    return [(name, servers[name]) for name in names[cut:] + names[:cut]]


Rounds = dict[tuple[str, int], dict[str, list[Load]]]


def closed(servers: dict[str, Server], bodies: dict[str, Path], length: Length) -> Rounds:
    """(body, connections) -> router -> its rounds, each of which all routers run before the
    next."""
    seen: Rounds = {}
    for number in range(length.rounds):
        for body, request in bodies.items():
            for connections in CONNECTIONS:
                cell = seen.setdefault((body, connections), {})
                for name, server in turned(servers, number):
                    if number == 0:
                        aim(server).run(request, connections, WARM_S)
                    cell.setdefault(name, []).append(aim(server).run(request, connections, length.seconds))
    return seen


def closed_rows(seen: Rounds) -> list[dict[str, Any]]:
    rows = []
    for (body, connections), found in seen.items():
        cell = {name: found[name] for name in ("direct", *ROUTERS) if name in found}
        bare = [load.cpu_us for load in cell.get("envoy", ())]
        for name, loads in cell.items():
            cpu = [load.cpu_us for load in loads]
            rows.append(
                {
                    "body": body,
                    "connections": connections,
                    "router": name,
                    "rps": middle([load.rps for load in loads], 0),
                    "spread": round(spread([load.rps for load in loads]), 2),
                    "cpu_us": "" if name == "direct" else middle(cpu, 1),
                    "of_bare_envoy": middle(paired(cpu, bare)) if bare and name != "direct" else "",
                    **added(loads, cell["direct"]),
                    "failed": sum(load.failed for load in loads),
                }
            )
    return rows


def added(loads: list[Load], direct: list[Load]) -> dict[str, Any]:
    """Latency, and what it is more than without a proxy in the same round."""
    return {
        "p50_ms": middle([load.p50_ms for load in loads], 3),
        "p99_ms": middle([load.p99_ms for load in loads], 3),
        "added_p50_ms": middle(differences([x.p50_ms for x in loads], [x.p50_ms for x in direct]), 3),
        "added_p99_ms": middle(differences([x.p99_ms for x in loads], [x.p99_ms for x in direct]), 3),
    }


def saturation(seen: Rounds, name: str, body: str) -> float:
    """Requests a second at most, over the numbers of connections."""
    return max(
        statistics.median(load.rps for load in cell[name])
        for (b, _), cell in seen.items()
        if b == body and name in cell
    )


def opened(servers: dict[str, Server], bodies: dict[str, Path], seen: Rounds, length: Length) -> list[dict[str, Any]]:
    """Rows at fixed rates, shares of what ours serves at most just before: minutes ago the machine
    may have been twice as quick. A router that cannot serve the rate says what it could, in that
    earlier closed loop."""
    rows = []
    for body, share in RATES:
        mine = [aim(servers["ours"]).run(bodies[body], OPEN_CONNECTIONS, length.seconds) for _ in range(length.rounds)]
        rate = round(share * statistics.median(load.rps for load in mine))
        enough = 1.1 * share * saturation(seen, "ours", body)
        able = {n: s for n, s in servers.items() if saturation(seen, n, body) > enough}
        found: dict[str, list[Load]] = {name: [] for name in able}
        for number in range(length.rounds):
            for name, server in turned(able, number):
                found[name].append(aim(server).run(bodies[body], OPEN_CONNECTIONS, 2 * length.seconds, rate))
        for name in servers:
            row: dict[str, Any] = {"body": body, "rate": rate, "of_our_saturation": share, "router": name}
            if name not in able:
                rows.append({**row, "note": f"beyond it: {saturation(seen, name, body):.0f} at most"})
                continue
            loads = found[name]
            cpu = "" if name == "direct" else middle([load.cpu_us for load in loads], 1)
            late = max(load.late_p99_ms for load in loads)
            lost = {k: sum(getattr(load, k) for load in loads) for k in ("failed", "unsent")}
            rows.append({**row, "cpu_us": cpu, **added(loads, found["direct"]), "late_p99_ms": late, **lost})
    return rows


def goals(tls: str, closed_: list[dict[str, Any]], open_: list[dict[str, Any]]) -> list[Goal]:
    def one(rows: list[dict[str, Any]], key: str, **wanted: Any) -> float | None:
        values = [row.get(key) for row in rows if wanted.items() <= row.items()]
        return float(values[0]) if values and isinstance(values[0], int | float) else None

    found = [
        Goal(f"CPU of bare Envoy's, {body}, 32 connections, {tls}", "at most", 1.25, value, "x")
        for body in BODIES
        for value in [one(closed_, "of_bare_envoy", router="ours", body=body, connections=32)]
    ]
    half = {"router": "ours", "body": "1 KB", "of_our_saturation": 0.5}
    found.append(
        Goal(f"added p50 at half of saturation, {tls}", "at most", 0.25, one(open_, "added_p50_ms", **half), "ms")
    )
    found.append(
        Goal(f"added p99 at half of saturation, {tls}", "at most", 2.0, one(open_, "added_p99_ms", **half), "ms")
    )
    mine = one(closed_, "cpu_us", router="ours", body="1 KB", connections=32)
    other = one(closed_, "cpu_us", router="fastapi+httpx", body="1 KB", connections=32)
    ratio = other / mine if mine and other else None
    found.append(Goal(f"CPU of FastAPI + httpx over ours, 1 KB, 32 connections, {tls}", "at least", 15, ratio, "x"))
    return found


def run(work: Path, *, quick: bool = False) -> Report:
    length = QUICK if quick else FULL
    tables: dict[str, list[dict[str, Any]]] = {}
    found: list[Goal] = []
    notes: list[str] = []
    versions: dict[str, str] = {}
    bodies = requests(work)
    for tls in ("plain", "TLS"):
        with (
            upstreams(work) as behind,
            started(work / tls, ROUTERS, tls == "TLS", behind) as field_,
        ):
            notes += [f"{name} is missing: {why}" for name, why in field_.absent.items() if tls == "plain"]
            versions |= {name: server.version for name, server in field_.servers.items()}
            servers = {"direct": Server(behind.ports[0], None, ""), **field_.servers}
            seen = closed(servers, bodies, length)
            closed_ = tables[f"closed loop, {tls}"] = closed_rows(seen)
            open_ = tables[f"fixed rate, {tls}"] = opened(servers, bodies, seen, length)
            found += goals(tls, closed_, open_)
    return Report(tables, found, notes, versions)


def parts(work: Path, *, quick: bool = False) -> Report:
    """Ours, ours without one part, and bare Envoy with and without its key check: 1 KB, 8
    connections."""
    length = Length(5, 1.5) if not quick else QUICK
    whole = "ours"
    routers: dict[str, Serve] = {whole: ours.serve}
    for part, (what, _) in PARTS.items():
        routers[f"without {what}"] = partial(_without, part)
    routers["bare Envoy, key and split"] = envoy.serve
    routers["bare Envoy, one open route"] = partial(envoy.serve, open_route=True)
    loads: dict[str, list[Load]] = {}
    with upstreams(work) as behind, started(work, routers, True, behind) as field_:
        request = requests(work)["1 KB"]
        for number in range(length.rounds + 1):
            for name, server in turned(field_.servers, number):
                load = aim(server).run(request, 8, length.seconds if number else WARM_S)
                if number:
                    loads.setdefault(name, []).append(load)
    mine = [load.cpu_us for load in loads[whole]]
    rows = []
    for name in field_.servers:
        seen = loads[name]
        cpu = [load.cpu_us for load in seen]
        rows.append(
            {
                "router": name,
                "cpu_us": middle(cpu, 1),
                "min": round(min(cpu), 1),
                "spread": round(spread(cpu), 2),
                "saves_us": middle(differences(mine, cpu), 1),
                "saves_percent": middle([100 * d / m for d, m in zip(differences(mine, cpu), mine, strict=True)], 1),
                "failed": sum(load.failed for load in seen),
            }
        )
    absent = [f"{name} could not be measured: {why}" for name, why in field_.absent.items()]
    return Report({"1 KB, 8 connections, TLS": rows}, (), absent, {"envoy": envoy.version()})


@contextlib.contextmanager
def _without(part: str, place: Place) -> Iterator[Server]:
    """Without TLS is without a certificate."""
    if part == "tls":
        place = Place(place.work, place.port, place.cores, place.upstreams, None)
        with ours.serve(place) as server:
            yield server
    else:
        with ours.serve(place, part) as server:
            yield server
