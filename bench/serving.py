"""Models served with TLS and key, compared with Triton alone and with other model servers.

The same ONNX file with the same threads everywhere. Each peer runs beside ours in turn, so that its
ratio is one of the same minutes; peers have neither TLS nor a key. ``per_core`` is requests for
each second of CPU that everything serving used: proxy, server and their children. Client and
servers share the machine; from four cores on, client, proxy and models have cores of their own.

``--parts`` measures where a request's time goes below the router, and what instances and threads
do.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amphitrite.controlplane.runtimes.local import instance_records
from amphitrite.dataplane.table.routing_table import InstanceAddress, SocketAddress
from bench import machine, peers, product, serving_parts, tritons
from bench.loadgen import TOLERATED, Generator, Load, request_file
from bench.product import Unavailable
from bench.stats import Goal, Report, middle, paired, spread
from bench.tensors import MODELS, files

CONNECTIONS = (1, 8, 32)
OURS, DIRECT = "ours", "direct Triton"


@dataclass(frozen=True, slots=True)
class Length:
    rounds: int
    seconds: float


FULL, QUICK = Length(3, 1.5), Length(2, 0.5)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Where it is asked, the requests by model, and all processes whose CPU it costs."""

    generator: Generator
    requests: dict[str, Path]
    pids: tuple[int, ...]

    def run(self, model: str, connections: int, seconds: float) -> Load:
        before = sum(machine.cpu_seconds(pid) for pid in self.pids)
        load = self.generator.run(self.requests[model], connections, seconds)
        used = sum(machine.cpu_seconds(pid) for pid in self.pids) - before
        return load.costing(used)


def cores() -> dict[str, list[int]]:
    """Cores of the client, the proxy and the models; all share all when there are few."""
    have = machine.cores()
    if len(have) < 4:
        return {"client": have, "proxy": have, "models": have}
    return {"client": have[:1], "proxy": have[1:2], "models": have[2:]}


@contextmanager
def ours(work: Path) -> Iterator[dict[str, Candidate]]:
    """The product with both models in one Triton, and that Triton itself."""
    repository = work / "repository"
    for name, file in files(work).items():
        tritons.write_model(repository, name, {"model.onnx": file})
    with product.running(work) as server:
        server.ml("model", "create", "-n", "bench", "-v", "1", "--type", "triton_model", "--path", str(repository))
        chosen = ("--set", "model=azureml:bench:1", "--set", "request_settings.max_concurrent_requests_per_instance=64")
        server.ml("online-deployment", "create", "-f", "blue-deployment.yml", *chosen)
        server.ml("online-endpoint", "update", "-n", "pictures", "--traffic", "blue=100")
        uri, key = server.endpoint()
        (record,) = instance_records.load_all(work / "home" / "instances")
        assert record.process is not None
        triton = record.process.pid
        envoy = json.loads((work / "home" / "dataplane" / "envoy.json").read_text())["pid"]
        machine.pin(triton, cores()["models"])
        machine.pin(envoy, cores()["proxy"])
        prefix = uri.partition("://")[2].partition("/")[2].rstrip("/")
        port = int(uri.partition("://")[2].partition("/")[0].rpartition(":")[2])
        through, direct = {}, {}
        for name, model in MODELS.items():
            request = model.request()
            headers = (f"Authorization: Bearer {key}", *request.headers)
            path = f"v2/models/{name}/infer"
            through[name] = request_file(work / f"{name}.ours", f"/{prefix}/{path}", headers, request.body)
            direct[name] = request_file(work / f"{name}.direct", f"/{path}", request.headers, request.body)
        yield {
            OURS: Candidate(Generator(port, True, None, cores()["client"]), through, (envoy, triton)),
            DIRECT: Candidate(_direct(record.address), direct, (triton,)),
        }


def _direct(address: InstanceAddress) -> Generator:
    """Where the proxy itself reaches the Triton."""
    if isinstance(address, SocketAddress):
        return Generator(0, False, None, cores()["client"], address.path)
    return Generator(address.port, False, None, cores()["client"])


@contextmanager
def peer(name: str, work: Path, threads: int) -> Iterator[tuple[Candidate, str]]:
    """Raises Unavailable."""
    kind = peers.PEERS[name]
    with peers.started(kind, work, files(work), threads) as running:
        machine.pin(running.pid, cores()["models"])
        requests = {
            model: request_file(
                work / f"{model}.request",
                kind.path.format(model=model),
                ("Content-Type: application/" + ("octet-stream" if kind.form == "raw" else "json"),),
                peers.body(kind.form, MODELS[model].request().tensor.tobytes()),
            )
            for model in MODELS
        }
        yield (
            Candidate(Generator(running.port, False, None, cores()["client"]), requests, (running.pid,)),
            running.version,
        )


Seen = dict[tuple[str, int], dict[str, list[Load]]]


def rounds(candidates: dict[str, Candidate], length: Length) -> Seen:
    """(model, connections) -> candidate -> its rounds, in turn."""
    seen: Seen = {}
    for number in range(length.rounds):
        for model in MODELS:
            for connections in CONNECTIONS:
                for name, candidate in candidates.items():
                    if number == 0:
                        candidate.run(model, connections, min(1.0, length.seconds))
                    load = candidate.run(model, connections, length.seconds)
                    seen.setdefault((model, connections), {}).setdefault(name, []).append(load)
    return seen


def rows(seen: Seen, shown: str, reference: str) -> list[dict[str, Any]]:
    """One candidate's rows, and its ratios to ``reference`` in the same rounds."""
    found = []
    for (model, connections), cell in seen.items():
        loads, others = cell[shown], cell[reference]
        found.append(
            {
                "model": model,
                "connections": connections,
                "server": shown,
                "rps": middle([load.rps for load in loads], 0),
                "spread": round(spread([load.rps for load in loads]), 2),
                "p50_ms": middle([load.p50_ms for load in loads], 3),
                "p99_ms": middle([load.p99_ms for load in loads], 3),
                "cpu_us": middle([load.cpu_us for load in loads], 0),
                "per_core": middle([load.per_core for load in loads], 0),
                "rps_ratio": middle(paired([x.rps for x in loads], [x.rps for x in others])),
                "per_core_ratio": middle(paired([x.per_core for x in loads], [x.per_core for x in others])),
                "failed": sum(load.failed for load in loads),
            }
        )
    return found


def run(work: Path, *, quick: bool = False) -> Report:
    length = QUICK if quick else FULL
    threads = len(cores()["models"])
    notes, versions = [], {"onnxruntime": peers.onnxruntime()}
    beside: list[dict[str, Any]] = []
    best: dict[tuple[str, int], tuple[float, str]] = {}
    with ours(work) as mine:
        seen = rounds(mine, length)
        own = [row for name in mine for row in rows(seen, name, DIRECT)]
        for name in peers.PEERS:
            try:
                with peer(name, machine.folder(work, name), threads) as (candidate, version):
                    versions[name] = version
                    found = rounds({OURS: mine[OURS], name: candidate}, length)
            except Unavailable as exc:
                notes.append(f"{name} is missing: {exc}")
                print(notes[-1], flush=True)
                continue
            for row in rows(found, name, OURS):
                row["ours_per_core_over_it"] = round(1 / row["per_core_ratio"], 2) if row["per_core_ratio"] else ""
                beside.append(row)
                if row["failed"] > TOLERATED * row["rps"]:
                    notes.append(f"{name}, {row['model']}, {row['connections']} connections: {row['failed']} failed")
                elif row["per_core_ratio"]:
                    place = (row["model"], row["connections"])
                    best[place] = max(best.get(place, (0.0, "")), (row["per_core_ratio"], name))
    return Report({"end to end": own, "peers, beside ours": beside}, goals(seen, best), notes, versions)


def goals(seen: Seen, best: dict[tuple[str, int], tuple[float, str]]) -> list[Goal]:
    found = []
    for model in MODELS:
        cell = seen[model, 8]
        ratio = statistics.median(paired([x.rps for x in cell[OURS]], [x.rps for x in cell[DIRECT]]))
        found.append(Goal(f"throughput of direct Triton's, {model}, 8 connections", "at least", 0.9, ratio, "x"))
        share, name = best.get((model, 8), (0.0, "no peer"))
        value = 1 / share if share else None
        found.append(Goal(f"per core over the best peer ({name}), {model}, 8 connections", "at least", 1.5, value, "x"))
    return found


def parts(work: Path, *, quick: bool = False) -> Report:
    return serving_parts.run(work, seconds=0.5 if quick else 2.0, rounds=2 if quick else 3)
