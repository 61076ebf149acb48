"""Reads the demand on scaled deployments from Envoy, about each second.

Decides when Envoy is asked, and what waits for a control plane. The routing table says which
deployments are sampled, and how often: without any, nothing is asked. ``metrics.demand`` decides
what a sample is. Must not know who wants them.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from amphitrite.dataplane.envoy.filters import demand_stats
from amphitrite.dataplane.envoy.process.admin_client import AdminClient
from amphitrite.dataplane.envoy.translate.clusters import grpc_name
from amphitrite.dataplane.machine.processes import ProcessRecord
from amphitrite.dataplane.metrics import demand
from amphitrite.dataplane.metrics.counters import Series
from amphitrite.dataplane.metrics.demand import Meter, Sample
from amphitrite.dataplane.table.routing_table import RoutingTable
from amphitrite.schemas.errors import Error

#: A pause is at least so many times as long as the reading before it.
_PAUSES = 20.0
#: How often the table is looked at while nothing is sampled.
_LOOK_S = 1.0
#: The clusters of one deployment that are read: the present one and those before it, which finish
#: what they have begun.
_CLUSTERS_MAX = 4
#: Samples of one flush: far below the largest body that a control plane takes.
_FLUSH_MAX = 2_000


class DemandSampler:
    """``run`` is a thread of its own; all else may be called from any thread.

    ``process``: which Envoy answers at ``socket`` now. ``table``: the table in force.
    ``on_samples``: called when there is something to send. ``held``: the requests that wait for an
    instance, by deployment.
    """

    def __init__(
        self,
        socket: Path,
        process: Callable[[], ProcessRecord | None],
        table: Callable[[], RoutingTable],
        on_samples: Callable[[], None],
        held: Callable[[], Mapping[Series, int]] = dict,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._socket, self._process, self._table, self._on_samples = socket, process, table, on_samples
        self._held, self._clock = held, clock
        self._due = threading.Event()
        self._lock = threading.Lock()
        self._waiting: dict[Series, deque[Sample]] = {}
        self._seen: RoutingTable | None = None
        self._every_s: dict[Series, float] = {}
        self._clusters: dict[Series, tuple[str, ...]] = {}
        self._meter = Meter()
        #: Unique among those of this agent, whatever process it is.
        self._flush = time.time_ns()
        self._sending: tuple[Sample, ...] = ()

    def wake(self) -> None:
        """Samples now: a request waits."""
        self._due.set()

    def run(self, ended: threading.Event) -> None:
        """Until ``ended`` is set and ``wake`` is called."""
        admin = AdminClient(self._socket)
        try:
            while not ended.is_set():
                at_once = self._due.is_set()
                self._due.clear()
                began = self._clock()
                self._follow_table()
                if self._every_s:
                    self._sample(admin, began, at_once)
                took_s = self._clock() - began
                pause = min(self._every_s.values(), default=_LOOK_S) - took_s
                self._due.wait(max(pause, _PAUSES * took_s))
        finally:
            admin.close()

    def take(self) -> dict[str, Any] | None:
        """The flush to send, in its wire form; None if there is nothing. The same one until
        ``sent``, so that whoever receives it twice can tell."""
        with self._lock:
            if not self._sending:
                waiting = [sample for of_one in self._waiting.values() for sample in of_one]
                self._sending, left = tuple(waiting[:_FLUSH_MAX]), waiting[_FLUSH_MAX:]
                self._waiting = {}
                for sample in left:
                    self._keep(sample)
                self._flush += 1
            if not self._sending:
                return None
            content = demand.samples_to_json(self._sending, self._clock())
            return {"flush": self._flush, "samples": content}

    def sent(self) -> None:
        """What ``take`` has returned has arrived."""
        with self._lock:
            self._sending = ()

    def _follow_table(self) -> None:
        table = self._table()
        if table is self._seen:
            return
        self._seen = table
        targets = [(route.name, target) for route in table.routes for target in route.targets]
        self._every_s = {(name, t.name): t.sample_every_s for name, t in targets if t.sample_every_s}
        clusters: dict[Series, tuple[str, ...]] = {}
        for name, target in targets:
            series = name, target.name
            if series in self._every_s:
                former = [one for one in self._clusters.get(series, ()) if one != target.cluster]
                clusters[series] = ((target.cluster,) if target.cluster else ()) + tuple(former[: _CLUSTERS_MAX - 1])
        self._clusters = clusters

    def _sample(self, admin: AdminClient, now: float, at_once: bool) -> None:
        """Nothing is read while Envoy does not answer, or when the process has changed during the
        reading."""
        watched = sorted(self._every_s if at_once else demand.due(self._meter, self._every_s, now))
        if not watched:
            return
        owners = {
            name: series
            for series in watched
            for cluster in self._clusters[series]
            for name in (cluster, grpc_name(cluster))
        }
        before = self._process()
        try:
            text = admin.stats(demand_stats.pattern(owners, watched))
        except Error:
            return
        if before is None or self._process() != before:
            return
        held = self._held()
        readings = {
            series: replace(reading, held=held.get(series, 0))
            for series, reading in demand_stats.read(text, owners, watched).items()
        }
        process = before.pid, before.create_time
        self._meter, samples = demand.read(self._meter, process, readings, self._every_s, now)
        with self._lock:
            for sample in samples:
                self._keep(sample)
        if samples:
            self._on_samples()

    def _keep(self, sample: Sample) -> None:
        self._waiting.setdefault(sample.series, deque(maxlen=demand.WAITING_MAX)).append(sample)
