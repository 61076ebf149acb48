"""Several control planes on one database: exclusion, being alone, hearing of each other's changes.

Each ``Database`` here is what another process would have: connections and locks of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import insert, text

from amphitrite.controlplane.agents.agent_registry import AgentRegistry, TableFeed
from amphitrite.controlplane.core.history.revisions import NOBODY
from amphitrite.controlplane.core.history.traffic_history import Traffic
from amphitrite.controlplane.core.observed.status import Ref
from amphitrite.controlplane.core.rollouts import rollout_plan, traffic_rollout
from amphitrite.controlplane.core.scaling.scales import Scale, ScaleChange
from amphitrite.controlplane.reconciliation.reconciler import Reconciler
from amphitrite.controlplane.store.sql.tables import counters
from amphitrite.controlplane.store.sql.transactions import CONTROL_PLANE, Database
from amphitrite.controlplane.store.state.database import SqlStore
from amphitrite.dataplane.table.routing_table import RoutingTable
from amphitrite.schemas.errors import Error

from ...waiting import DEADLINE_S, wait_until
from ..runtimes.memory_runtime import MemoryRuntime
from .conftest import Clock

on_postgresql = pytest.mark.parametrize("kind", ["postgresql"])


@pytest.fixture
def other(store: SqlStore) -> Iterator[SqlStore]:
    """Another process's."""
    opened = SqlStore(Database(store.database.url))
    yield opened
    opened.close()


def put(store: SqlStore, name: str = "ep1", **fields: Any) -> None:
    store.put_endpoint({"name": name, **fields}, if_match=None, if_none_match=False, now=1.0)


@on_postgresql
def test_a_check_holds_until_it_is_written(store: SqlStore, other: SqlStore) -> None:
    """Both add one to what they read; nothing is lost."""

    def add(one: SqlStore) -> None:
        for _ in range(10):
            with one.exclusive(), one.exclusive():
                found = {r.name: r.document["n"] for r in one.list_endpoints()}
                put(one, n=found.get("ep1", 0) + 1)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(add, one) for one in (store, other, store, other)]:
            done.result()
    assert store.get_endpoint("ep1").document["n"] == 40


def test_threads_of_one_process_exclude_each_other_and_themselves_not(store: SqlStore) -> None:
    order: list[str] = []

    def late() -> None:
        with store.exclusive():
            order.append("late")

    with ThreadPoolExecutor(1) as pool:
        with store.exclusive(), store.exclusive():
            waiting = pool.submit(late)
            put(store)
            order.append("early")
        waiting.result(60)
    assert order == ["early", "late"]


def test_what_fails_inside_frees_it_and_leaves_nothing(store: SqlStore) -> None:
    with pytest.raises(RuntimeError), store.exclusive(), store.database.write() as connection:
        connection.execute(insert(counters).values(name="x", value=1))
        raise RuntimeError
    with store.exclusive():
        put(store)
    with store.database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM counters")).scalar() == 0


@on_postgresql
def test_a_lost_lock_takes_the_write_with_it(store: SqlStore, other: SqlStore) -> None:
    with pytest.raises(Error) as caught, store.exclusive():
        with other.database.write() as connection:
            holders = "FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
            connection.execute(text(f"SELECT pg_terminate_backend(pid) {holders}"))
        put(store)
    assert caught.value.code == "RuntimeUnavailable"
    assert other.list_endpoints() == []
    put(store)


def test_one_alone_holds_a_name(store: SqlStore, other: SqlStore) -> None:
    with store.database.hold_named_lock(CONTROL_PLANE):
        with pytest.raises(Error) as caught, other.database.hold_named_lock(CONTROL_PLANE):
            pass
        assert caught.value.code == "Conflict" and "another control plane" in caught.value.message
        with other.database.hold_named_lock("another name"):
            pass
    with other.database.hold_named_lock(CONTROL_PLANE):
        pass


@on_postgresql
@pytest.mark.parametrize("taken", [False, True])
def test_a_name_is_taken_again_unless_somebody_was_faster(store: SqlStore, other: SqlStore, taken: bool) -> None:
    """``pg_terminate_backend`` cuts the connection; in between nobody holds it."""
    lost = threading.Event()
    mine = "pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')"
    with store.database.hold_named_lock("it", lost.set):
        before = holders(other.database)
        with other.database.write() as connection:
            if taken:
                key = "SELECT objid, classid FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
                ids = [tuple(row) for row in connection.execute(text(key))]
                assert len(ids) == 1
                number = (ids[0][1] << 32 | ids[0][0]) - (1 << 64 if ids[0][1] >> 31 else 0)
            cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND {mine}"
            connection.execute(text(cut))
            if taken:
                connection.execute(text("SELECT pg_advisory_lock(:number)"), {"number": number})
        if taken:
            assert lost.wait(DEADLINE_S)
        else:
            wait_until(lambda: bool(holders(other.database) - before), "another holds it")
            with pytest.raises(Error), other.database.hold_named_lock("it"):
                pass
            assert not lost.is_set()


def holders(database: Database) -> set[int]:
    """Who has a name, looked at only: who tries whether it is free has it for a moment, and is then
    the faster one."""
    here = "database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    with database.read() as connection:
        found = connection.execute(text(f"SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND {here}"))
        return {row.pid for row in found}


@on_postgresql
def test_changes_of_others_are_heard_of(store: SqlStore, other: SqlStore) -> None:
    heard = threading.Semaphore(0)
    end = store.database.listen(heard.release)
    assert heard.acquire(timeout=60)  # It listens now.
    put(store)  # its own
    with other.database.write():
        pass  # nothing
    with other.database.write(quiet=True) as connection:
        connection.execute(insert(counters).values(name="x", value=1))
    put(other, "ep2")
    assert heard.acquire(timeout=60)
    end()
    assert not heard.acquire(blocking=False)
    assert [thread.name for thread in threading.enumerate() if thread.name == "database-listen"] == []


@on_postgresql
def test_a_change_that_could_not_be_followed_is_followed_again(store: SqlStore, other: SqlStore) -> None:
    calls = threading.Semaphore(0)
    fail = iter([False, True, True])

    def follow() -> None:
        calls.release()
        if next(fail, False):
            raise Error("RuntimeUnavailable", "not now")

    end = store.database.listen(follow)
    assert calls.acquire(timeout=60)
    put(other)
    assert all(calls.acquire(timeout=60) for _ in range(3))
    end()


@pytest.mark.parametrize("kind", ["sqlite"])
def test_on_sqlite_nobody_else_writes(store: SqlStore) -> None:
    store.database.listen(lambda: pytest.fail("called"))()
    assert store.database.other_connections() == 0 and not store.database.is_shared


@on_postgresql
def test_others_are_counted(store: SqlStore, other: SqlStore) -> None:
    assert store.list_endpoints() == other.list_endpoints() == []
    assert store.database.other_connections() >= 1 and store.database.is_shared
    other.close()
    wait_until(lambda: store.database.other_connections() == 0, "nobody else is there")


def test_the_published_table_is_everybodys(store: SqlStore, other: SqlStore) -> None:
    assert other.published() is None
    table = store.publish(RoutingTable(0))
    assert other.published() == table == RoutingTable(1)


@on_postgresql
def test_what_no_row_can_hold_is_refused(store: SqlStore) -> None:
    for name in ("a\0b", "x" * 300):
        with pytest.raises(Error, match="the database cannot store this value") as caught:
            put(store, name)
        assert caught.value.code == "BadArgument"


def advance_rollout(store: SqlStore) -> None:
    if not store.active_rollouts():
        put(store, "ep")
        plan = rollout_plan.make("a", {}, Traffic({"b": 100}, {}), None, ("a", "b"), ())
        store.start_rollout(traffic_rollout.begin("ep", plan, 1.0))
    found = store.active_rollouts()[0]
    store.advance_rollout(found, found, None, by=NOBODY, now=1.0)


LEADER_WRITES: dict[str, Callable[[SqlStore], object]] = {
    "publish": lambda store: store.publish(RoutingTable(0), above=7),
    "record": lambda store: store.record({}, now=1.0),
    "remove": lambda store: store.remove([], now=1.0),
    "change_signing_keys": lambda store: store.change_signing_keys([], []),
    "mark_models_used": lambda store: store.mark_models_used([], now=1.0),
    "set_scale": lambda store: store.set_scale(ScaleChange(Ref("ep", "blue"), None, Scale(1, "rule"))),
    "advance_rollout": lambda store: advance_rollout(store),
}


@pytest.mark.parametrize("write", LEADER_WRITES.values(), ids=LEADER_WRITES)
def test_a_former_leader_writes_nothing(store: SqlStore, other: SqlStore, write: Callable[[SqlStore], object]) -> None:
    """It was suspended after it had looked at its Lease, and goes on when another one leads."""
    store.begin_term()
    write(store)
    other.begin_term()
    write(other)
    with pytest.raises(Error, match="no longer leads") as refused:
        write(store)
    assert refused.value.code == "Conflict"
    store.begin_term()
    write(store)
    with pytest.raises(Error, match="no longer leads"):
        write(other)


def test_a_leader_that_was_fenced_off_by_one_that_came_late_goes_on(store: SqlStore, other: SqlStore) -> None:
    """A former leader was suspended before it began its term, and begins it now. It still leads by
    no clock, so it writes nothing, and the leader begins a term again."""
    clock, late = Clock(), threading.Event()
    leader = Reconciler(store, MemoryRuntime(clock), AgentRegistry(lambda: None), TableFeed(), clock, max_body_bytes=1)
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(leader.run, stop)
        try:
            wait_until(lambda: leader.last_pass is not None, "the first pass")
            former = Reconciler(
                other, MemoryRuntime(clock), AgentRegistry(lambda: None), TableFeed(), clock,
                max_body_bytes=2, may_act=lambda: not late.is_set(),
            )  # fmt: skip
            other.begin_term()
            late.set()
            with pytest.raises(Error, match="no longer leads"):
                former.run_once()
            put(store, "ep2")

            def passed() -> bool:
                leader.wake()
                table = store.published()
                return table is not None and [route.name for route in table.routes] == ["ep2"]

            wait_until(passed, "the leader publishes again")
        finally:
            stop.set()
            leader.wake()
            running.result(DEADLINE_S)
