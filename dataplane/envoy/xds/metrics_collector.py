"""Reads Envoy's counters every few seconds and keeps their sums.

Decides when Envoy is asked, and what is saved so that a new agent continues the sums.
``metrics.counters`` decides what the numbers are. Must not know who wants them.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from amphitrite.dataplane.envoy.filters.request_stats import FILTER, read
from amphitrite.dataplane.envoy.process.admin_client import AdminClient
from amphitrite.dataplane.envoy.translate.clusters import grpc_name
from amphitrite.dataplane.machine.atomic_files import write_private
from amphitrite.dataplane.machine.json_log import log
from amphitrite.dataplane.machine.processes import ProcessRecord
from amphitrite.dataplane.metrics.answer_counts import Answers
from amphitrite.dataplane.metrics.counters import (
    NO_ENDPOINT,
    Ledger,
    Series,
    Totals,
    add_answers,
    add_reading,
    credentials,
    ledger_from_json,
    ledger_to_json,
    totals_to_json,
)
from amphitrite.dataplane.table.routing_table import RoutingTable
from amphitrite.schemas.errors import Error
from amphitrite.schemas.sealed_json import seal, unseal

#: While Envoy is being stopped, so that what it counts last is not lost.
_EVERY_AT_END_S = 0.25
#: Reading the counters of a thousand endpoints takes long. A pause is at least so many times as
#: long as the reading before it.
_PAUSES = 20.0
#: The most that is lost when an agent and its Envoy end at the same moment, as in a power failure.
_SAVE_EVERY_S = 60.0


class MetricsCollector:
    """``run`` is a thread of its own, ``content`` may be called from any thread. ``on_change`` is
    called after each reading.

    ``process``: which Envoy answers at ``socket`` now. ``table``: the table in force. ``file``:
    where the sums are saved. ``waiting``: the requests that wait for a place, by cluster.
    ``answers``: what was counted of answers since the last call.
    """

    def __init__(
        self,
        socket: Path,
        process: Callable[[], ProcessRecord | None],
        table: Callable[[], RoutingTable],
        file: Path,
        every_s: float,
        on_change: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
        waiting: Callable[[], Mapping[str, int]] = dict,
        answers: Callable[[], Mapping[Series, Answers]] = dict,
    ) -> None:
        self._socket, self._process, self._table, self._file, self._clock = socket, process, table, file, clock
        self._every_s, self._on_change, self._waiting, self._answers = every_s, on_change, waiting, answers
        self._owners: dict[str, Series] = {}
        self._ledger = self._load()
        self._saved_at = clock()

    def content(self) -> dict[str, Any]:
        """The newest sums in their wire form."""
        return totals_to_json(self._ledger.totals)

    def run(self, stop: threading.Event, ended: threading.Event) -> None:
        """Until ``ended``. After ``stop``, while Envoy is being stopped, the pauses are shorter."""
        admin, pause = AdminClient(self._socket), self._every_s
        try:
            while not ended.is_set():
                if stop.wait(pause):
                    ended.wait(_EVERY_AT_END_S)
                began = time.monotonic()
                self._read(admin)
                pause = max(self._every_s, _PAUSES * (time.monotonic() - began))
        finally:
            admin.close()
            self._save()

    def _read(self, admin: AdminClient) -> None:
        """Nothing is read while Envoy does not answer, or when the process has changed during the
        reading."""
        before = self._process()
        try:
            text = admin.stats(FILTER)
        except Error:
            return
        if before is None or self._process() != before:
            return
        table = self._table()
        current = _series(table)
        # Former clusters of a deployment stay: they finish what they have begun.
        for route in table.routes:
            for target in route.targets:
                if target.cluster is not None:
                    series = route.name, target.name
                    self._owners.update({target.cluster: series, grpc_name(target.cluster): series})
        reading = replace(read(text, self._owners), waiting=self._waiting_by_series())
        # A new Envoy counts from zero: only this sum still holds what its predecessor has counted.
        another = self._ledger.process is not None and self._ledger.process[0] != before.pid
        accepted = {(route.name, credential) for route in table.routes for credential in credentials(route)}
        process = before.pid, before.create_time
        ledger = add_reading(self._ledger, process, reading, current, self._clock(), accepted)
        answers = {series: counted for series, counted in self._answers().items() if series in current}
        self._ledger = add_answers(ledger, answers, _compared(table))
        self._owners = {c: s for c, s in self._owners.items() if s in current or s in self._ledger.removed}
        # Nothing but these sums holds what was counted of answers.
        if another or answers or self._clock() - self._saved_at >= _SAVE_EVERY_S:
            self._save()
        self._on_change()

    def _waiting_by_series(self) -> dict[Series, int]:
        found: Counter[Series] = Counter()
        for cluster, n in self._waiting().items():
            if (owner := self._owners.get(cluster)) is not None:
                found[owner] += n
        return dict(found)

    def _load(self) -> Ledger:
        try:
            return ledger_from_json(unseal(self._file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError) as exc:
            log("error", "starting without the saved counters", error=repr(exc))
        return Ledger(Totals(self._clock()))

    def _save(self) -> None:
        self._saved_at = self._clock()
        try:
            write_private(self._file, seal(json.dumps(ledger_to_json(self._ledger))))
        except OSError as exc:
            log("warning", "the counters cannot be saved", error=str(exc))


def _compared(table: RoutingTable) -> set[Series]:
    return {(route.name, route.comparison.candidate) for route in table.routes if route.comparison is not None}


def _series(table: RoutingTable) -> set[Series]:
    targets = {(route.name, target.name) for route in table.routes for target in route.targets}
    return {NO_ENDPOINT, *((route.name, "") for route in table.routes), *targets}
