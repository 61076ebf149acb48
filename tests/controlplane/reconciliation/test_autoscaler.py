"""The loop that stores what scalers propose: two of them, a failing pass, and the end of a term."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from amphitrite.controlplane.core.observed.status import Ref
from amphitrite.controlplane.core.scaling.scales import Scale, ScaleChange, ScaleEvent
from amphitrite.controlplane.reconciliation.autoscaler import RETRY_S, Autoscaler, Proposals
from amphitrite.controlplane.reconciliation.leader_loop import LeaderLoop
from amphitrite.controlplane.store.state.database import SqlStore
from amphitrite.schemas.errors import Error

from ...stores import new_store
from ...waiting import DEADLINE_S, wait_until

BLUE = Ref("ep", "blue")


class OneMore:
    """Adds one instance in each pass."""

    def __init__(self, store: SqlStore, reads: int = 1) -> None:
        self.store, self.reads = store, reads
        self.read: Scale | None = None

    def propose(self, now: float) -> Proposals:
        if self.reads:
            self.reads -= 1
            self.read = self.store.scales().get(BLUE)
        count = 1 if self.read is None else self.read.count + 1
        event = ScaleEvent(now, count - 1, count, "one more", "rule")
        return Proposals((ScaleChange(BLUE, self.read, Scale(count, "rule"), event),), now + 30.0)


@pytest.fixture
def store(tmp_path: Path) -> SqlStore:
    made = new_store(tmp_path / "store.db")
    made.put_endpoint({"name": "ep"}, if_match=None, if_none_match=False, now=1.0)
    made.put_deployment(
        "ep", {"name": "blue"}, {"name": "m", "version": "1"}, if_match=None, if_none_match=False, now=1
    )
    return made


def test_two_that_have_read_one_state_scale_once(store: SqlStore) -> None:
    wakes: list[str] = []
    first = Autoscaler(store, [OneMore(store)], lambda: wakes.append("first"))
    second = Autoscaler(store, [OneMore(store)], lambda: wakes.append("second"))
    assert first.make_pass(5.0) == 35.0
    late = OneMore(store, reads=0)  # It has read nothing yet, as before the first.
    assert Autoscaler(store, [late], lambda: wakes.append("late")).make_pass(5.0) == 5.0  # At once again.
    assert second.make_pass(6.0) == 36.0
    assert wakes == ["first", "second"]
    assert [(event.before, event.after) for event in store.scale_events(BLUE)] == [(0, 1), (1, 2)]


def test_a_scaler_that_fails_does_not_stop_the_others(store: SqlStore) -> None:
    class Broken:
        def propose(self, now: float) -> Proposals:
            raise ValueError("a row that nobody can read")

    assert Autoscaler(store, [Broken(), OneMore(store)], lambda: None).make_pass(5.0) == 5.0 + RETRY_S
    assert store.scales()[BLUE].count == 1


def test_who_no_longer_leads_stores_nothing(store: SqlStore) -> None:
    with pytest.raises(Error, match="no longer leads"):
        Autoscaler(store, [OneMore(store)], lambda: None, may_act=lambda: False).make_pass(5.0)
    assert store.scales() == {}


def test_the_loop_goes_on_after_a_failed_pass_and_ends_with_the_term() -> None:
    passes: list[float] = []

    def make_pass(now: float) -> float | None:
        passes.append(now)
        if len(passes) == 1:
            raise Error("RuntimeUnavailable", "the database failed")
        return None

    loop, stop = LeaderLoop("test", make_pass, lambda: 7.0), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(loop.run, stop)

        def made() -> bool:
            loop.wake()
            return len(passes) >= 3

        wait_until(made, "three passes")
        stop.set()
        loop.wake()
        running.result(DEADLINE_S)
    assert set(passes) == {7.0}
