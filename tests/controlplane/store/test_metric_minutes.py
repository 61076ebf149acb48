"""The proxies' numbers on both databases: one row a minute, and which are kept."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from amphitrite.controlplane.store.reports.metric_minutes import KEEP_S, StoredMetrics
from amphitrite.controlplane.store.sql.tables import metric_minutes
from amphitrite.controlplane.store.state.database import SqlStore
from amphitrite.dataplane.metrics.counters import Totals

START = 28_000_000  # a minute


def totals(n: int) -> Totals:
    return Totals(5.5, {("ep1", "blue"): {"requests/200/": n}}, {("ep1", "blue"): n})


@pytest.fixture
def metrics(store: SqlStore) -> StoredMetrics:
    return StoredMetrics(store.database)


def rows(store: SqlStore) -> int:
    with store.database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(metric_minutes)).scalar() or 0)


def test_a_minute_keeps_its_last_numbers_and_a_window_begins_with_those_before_it(
    store: SqlStore, metrics: StoredMetrics
) -> None:
    for second, n in ((0, 1), (59, 2), (60, 3), (200, 4)):
        metrics.put("one", totals(n), START * 60 + second)
    metrics.put("two", totals(7), START * 60 + 60)
    assert metrics.newest(["one", "two", "nobody"]) == {"one": totals(4), "two": totals(7)}
    first = [(START, totals(2)), (START + 1, totals(3)), (START + 3, totals(4))]
    assert metrics.history(START, START + 3) == {"one": first, "two": [(START + 1, totals(7))]}
    assert metrics.history(START + 2, START + 9) == {"one": first[1:]}
    assert metrics.history(START + 4, START + 9) == {}
    assert rows(store) == 4


def test_numbers_that_do_not_change_are_written_once_an_hour(store: SqlStore, metrics: StoredMetrics) -> None:
    for minute in range(121):
        metrics.put("one", totals(1), (START + minute) * 60)
    assert rows(store) == 3


def test_what_is_old_is_forgotten_but_not_whoever_is_idle(store: SqlStore, metrics: StoredMetrics) -> None:
    metrics.put("gone", totals(1), START * 60)
    for minute in range(0, KEEP_S // 60 + 2, 30):
        metrics.put("idle", totals(1), (START + minute) * 60)
    metrics.put("idle", totals(2), (START + 2) * 60 + KEEP_S)
    assert metrics.newest(["gone", "idle"]) == {"idle": totals(2)}
