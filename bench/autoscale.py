"""Autoscale for real: one deployment from 1 to N under open-loop load, and fifty at once.

The model waits in Triton's batcher and needs no processor, so what is measured is the way from the
proxy's counters to an instance. Load comes at a fixed rate and never waits for an answer. Requests
above what the instances may do wait in the proxy (``max_queue_wait_ms``) until there are more.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

from amphitrite.controlplane.agents.agent_registry import AgentRegistry, TableFeed
from amphitrite.controlplane.core.observed.observations import AgentReport
from amphitrite.controlplane.core.observed.status import Ref
from amphitrite.controlplane.reconciliation.autoscaler import Autoscaler
from amphitrite.controlplane.reconciliation.demand_scaler import TargetUtilization
from amphitrite.controlplane.reconciliation.reconciler import Reconciler
from amphitrite.controlplane.store.reports.demand_samples import StoredSamples
from amphitrite.controlplane.store.state.database import open_store
from bench import loadgen
from bench.loadgen import Generator, Load
from bench.product import ML, Unavailable
from bench.stats import Goal, Report
from tests.controlplane.runtimes.memory_runtime import MemoryRuntime
from tests.system.models import waiting
from tests.system.product import Product, running

#: An instance works on so many requests at once; each takes ``WORK_S``.
PER_INSTANCE, WORK_S = 4, 0.2
CALM_RATE, BURST_RATE = 4.0, 50.0
CALM_S, BURST_S, AFTER_S = 10.0, 60.0, 330.0
MANY = 50
_MIB = 1024 * 1024
_BODY = b'{"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]}'
_PATH = "v2/models/waits/infer"


def run(work: Path, *, quick: bool = False, seconds: float = 60.0) -> Report:
    """``seconds``: how long fifty deployments scale, by a clock of their own. Raises
    Unavailable."""
    if not ML.exists():
        raise Unavailable(f"{ML} is missing: make install")
    with contextlib.contextmanager(running)(work) as product:
        waiting(work / "waits", WORK_S)
        product.run("model", "create", "-n", "waits", "-v", "1", "-t", "triton_model", "-p", str(work / "waits"))
        grown, goals = one_to_many(product, work, quick=quick)
    many, more = an_hour(work / "store.db", round(seconds))
    return Report({"one deployment": grown, f"{MANY} deployments": many}, [*goals, *more])


def one_to_many(product: Product, work: Path, *, quick: bool) -> tuple[list[dict[str, Any]], list[Goal]]:
    """The phases of a burst, and what they must show."""
    product.endpoint("grows")
    product.deploy(
        "blue", "waits:1", "--all-traffic", endpoint="grows",
        scale_settings={"type": "target_utilization", "min_instances": 1, "max_instances": 6},
        request_settings={
            "request_timeout_ms": 60_000, "max_queue_wait_ms": 60_000,
            "max_concurrent_requests_per_instance": PER_INSTANCE,
        },
    )  # fmt: skip
    headers = [f"Authorization: Bearer {product.keys('grows')[0]}", "Content-Type: application/json"]
    request = loadgen.request_file(work / "request", f"/endpoints/grows/{_PATH}", headers, _BODY)
    generator = Generator(product.scoring[1], tls=True)
    phases = (("calm", CALM_RATE, CALM_S), ("burst", BURST_RATE, 30.0 if quick else BURST_S),
              ("calm again", CALM_RATE, 30.0 if quick else AFTER_S))  # fmt: skip
    rows, failed = [], 0
    for name, rate, length in phases:
        load, seen = watched(product, partial(generator.run, request, 400, length, rate))
        failed += load.failed + load.unsent
        at_once = rate * WORK_S
        rows.append(
            {
                "phase": name, "rate": rate, "seconds": length, "requests": load.requests,
                "failed": load.failed + load.unsent, "p50_ms": round(load.p50_ms), "p99_ms": round(load.p99_ms),
                "max_ms": round(load.max_ms), "wanted": f"{seen[0][1]} -> {seen[-1][1]}",
                "most wanted": max(wanted for _, wanted, _ in seen), "most ready": max(ready for _, _, ready in seen),
                "more wanted after, s": _first(at for at, wanted, _ in seen if wanted > seen[0][1]),
                "capacity after, s": _first(at for at, _, ready in seen if ready * PER_INSTANCE >= at_once),
            }
        )  # fmt: skip
    for row in product.json("online-deployment", "scale-history", "-n", "blue", "-e", "grows")[::-1]:
        print(row["time"][11:19], row["reason"], flush=True)
    product.run("online-endpoint", "delete", "-n", "grows", "-y")
    return rows, [Goal("failed requests", "at most", 0, failed)]


Seen = list[tuple[float, int, int]]


def watched(product: Product, load: Callable[[], Load]) -> tuple[Load, Seen]:
    """The load, and (seconds, wanted, ready) meanwhile."""
    found: list[Load] = []
    thread = threading.Thread(target=lambda: found.append(load()))
    began, seen = time.monotonic(), []
    thread.start()
    while thread.is_alive():
        resource = product.rest("GET", "onlineEndpoints/grows/deployments/blue").json()
        ready = int(resource["properties"].get("status", {}).get("readyInstances", 0))
        seen.append((time.monotonic() - began, int(resource["sku"]["capacity"]), ready))
        thread.join(0.25)
    return found[0], seen


def _first(times: Iterable[float]) -> float | None:
    return next((round(at, 1) for at in times), None)


class Hour:
    """Many deployments whose demand never rests: the real store, reconciler and scaler, with
    instances and proxies that exist only here and a clock that does not wait."""

    def __init__(self, file: Path) -> None:
        self.now = 1_800_000_000.0
        self.store = open_store(file)
        self.samples = StoredSamples(self.store.database)
        self.runtime = MemoryRuntime(lambda: self.now)
        self.due = True
        self.agents = AgentRegistry(self._wake)
        self.reconciler = Reconciler(
            self.store, self.runtime, self.agents, TableFeed(), lambda: self.now, max_body_bytes=1_000_000
        )
        scaler = TargetUtilization(self.store, self.samples, self.agents, self.runtime, list)
        self.autoscaler = Autoscaler(self.store, [scaler], self._wake)
        self.runtime.watch(self._wake)
        model = {"name": "m", "version": "1", "digest": "d", "model_names": ["m"]}
        settings = {"type": "target_utilization", "max_instances": 20}
        for name in names():
            self.store.put_endpoint({"name": name}, if_match=None, if_none_match=False, now=self.now)
            document = {
                "name": "blue", "instance_type": "Standard_DS2_v2", "scale_settings": settings,
                "request_settings": {"max_concurrent_requests_per_instance": PER_INSTANCE},
            }  # fmt: skip
            self.store.put_deployment(name, document, model, if_match=None, if_none_match=False, now=self.now)

    def _wake(self) -> None:
        self.due = True

    def pass_s(self, demand: Callable[[int, float], float]) -> None:
        """One second. ``demand``: requests at once, by deployment and time."""
        self.now += 1.0
        rows = []
        for number, name in enumerate(names()):
            load = round(demand(number, self.now))
            rows.append([name, "blue", self.now, 1.0, load, 0, load, float(load), 0])
        self.samples.put("proxy", int(self.now), rows, self.now)
        self.agents.report(AgentReport("proxy", self.version, self.version, self.now))
        self.autoscaler.make_pass(self.now)
        while self.due:
            self.due = False
            self.reconciler.run_once()
            self.runtime.settle()
            self.agents.report(AgentReport("proxy", self.version, self.version, self.now))

    @property
    def version(self) -> int:
        table = self.store.published()
        return 0 if table is None else table.version


def names() -> list[str]:
    return [f"ep{number}" for number in range(MANY)]


def an_hour(file: Path, seconds: int) -> tuple[list[dict[str, Any]], list[Goal]]:
    """What it takes, and whether every number follows from the one before."""
    hour, rows, process = Hour(file), [], psutil.Process()
    loads = {
        "no request": lambda number, now: 0.0,
        "all scale": lambda number, now: 20 * (1 + math.sin(2 * math.pi * (now / 600 + number / MANY))),
    }
    for name, load in loads.items():
        for part in range(2):
            before, began = time.process_time(), len(events(hour))
            for _ in range(seconds // 4):
                hour.pass_s(load)
            took = time.process_time() - before
            kept = len(hour.samples.since(0))
            rows.append(
                {
                    "load": f"{name}, {'second' if part else 'first'} half", "seconds": seconds // 4,
                    "changes": len(events(hour)) - began, "CPU, % of a core": round(100 * took / (seconds // 4), 1),
                    "memory, MiB": round(process.memory_info().rss / _MIB), "rows of samples": kept,
                }
            )  # fmt: skip
    lost = 0
    for name in names():
        chain = hour.store.scale_events(Ref(name, "blue"))
        lost += sum(before.after != after.before for before, after in pairwise(chain))
    ready = Counter(i.workload.endpoint for i in hour.runtime.observe() if i.phase == "ready")
    drift = sum(d.instance_count != ready[d.endpoint] for d in hour.store.load_world().deployments)
    hour.store.close()
    goals = [Goal("changes that do not follow from the one before", "at most", 0, lost),
             Goal("deployments with another number of instances than wanted", "at most", 0, drift)]  # fmt: skip
    return rows, goals


def events(hour: Hour) -> list[object]:
    return [event for name in names() for event in hour.store.scale_events(Ref(name, "blue"))]
