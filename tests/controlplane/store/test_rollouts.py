"""Rollouts in the database: one at a time, and never a step without its traffic."""

from __future__ import annotations

from dataclasses import replace

import pytest

from amphitrite.controlplane.core.history.revisions import Author
from amphitrite.controlplane.core.history.traffic_history import Traffic
from amphitrite.controlplane.core.observed.status import Ref
from amphitrite.controlplane.core.rollouts import progress, rollout_plan, traffic_rollout
from amphitrite.controlplane.core.rollouts.traffic_rollout import Rollout
from amphitrite.controlplane.store.state import rollout_rows
from amphitrite.controlplane.store.state.database import SqlStore
from amphitrite.schemas.errors import Error

BLUE = {"traffic": {"blue": 100}}
BY = Author("ann", "step 1", "rollout")


def fresh() -> Rollout:
    before = Traffic({"blue": 100}, {})
    plan = rollout_plan.make("green", {"max_p95": "80ms"}, before, None, ("blue", "green"), (0.07,))
    return traffic_rollout.begin("Ep", plan, 5.0, "ann", "new model")


@pytest.fixture
def store(store: SqlStore) -> SqlStore:
    store.put_endpoint({"name": "Ep", **BLUE}, if_match=None, if_none_match=False, now=1.0)
    return store


def test_an_endpoint_has_one_rollout_at_a_time(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    first = store.start_rollout(fresh())
    assert first == replace(fresh(), number=1)
    with pytest.raises(Error, match="a rollout of endpoint 'Ep' to green goes on") as refused:
        store.start_rollout(fresh())
    assert (refused.value.code, "rollout abort -n Ep" in str(refused.value.hint)) == ("Conflict", True)
    ended = traffic_rollout.ended(first, "Aborted", "no", 6.0)
    store.change_rollout(first, ended, None, by=BY, now=6.0)
    assert store.active_rollouts() == []
    monkeypatch.setattr(rollout_rows, "KEPT", 2)
    for number in (2, 3):
        other = store.start_rollout(fresh())
        assert (other.number, store.active_rollouts()) == (number, [other])
        store.advance_rollout(other, replace(ended, number=number), None, by=BY, now=6.0)
    assert [one.number for one in store.rollouts("eP")] == [3, 2]


def test_a_step_and_its_traffic_are_one_change(store: SqlStore) -> None:
    before = store.start_rollout(fresh())
    one = progress.next_step(before, "the deployment is ready", 7.0)
    store.advance_rollout(before, one.rollout, one.traffic, by=BY, now=7.0)
    assert store.active_rollouts() == [one.rollout]
    assert store.get_endpoint("ep").document["traffic"] == {"blue": 99, "green": 1}
    last = store.revisions(Ref("ep"))[-1]
    assert (last.author, last.reason, last.cause, last.at) == ("ann", "step 1", "rollout", 7.0)
    for late in (store.advance_rollout, store.change_rollout):
        with pytest.raises(Error, match="has changed since it was read") as refused:
            late(before, replace(before, state="Paused"), Traffic({"blue": 100}, {}), by=BY, now=8.0)
        assert refused.value.code == "Conflict"
    assert store.get_endpoint("ep").document["traffic"] == {"blue": 99, "green": 1}


def test_neither_is_stored_if_the_other_cannot_be(store: SqlStore) -> None:
    before = store.start_rollout(fresh())
    store.delete(Ref("ep"), if_match=None, now=6.0)
    one = progress.next_step(before, "", 7.0)
    with pytest.raises(Error, match="is being deleted"):
        store.advance_rollout(before, one.rollout, one.traffic, by=BY, now=7.0)
    assert store.active_rollouts() == [before]
    with pytest.raises(Error, match="is being deleted"):
        store.start_rollout(fresh())


def test_a_document_and_its_rollout_are_one_change(store: SqlStore) -> None:
    document = {"name": "ep", "tags": {"a": "b"}, **BLUE}
    store.put_endpoint(document, if_match=None, if_none_match=False, now=5.0, rollout=fresh())
    with pytest.raises(Error, match="goes on"):
        store.put_endpoint({"name": "ep"}, if_match=None, if_none_match=False, now=6.0, rollout=fresh())
    assert store.get_endpoint("ep").document["tags"] == {"a": "b"}
    assert [one.number for one in store.active_rollouts()] == [1]


def test_rollouts_go_with_their_endpoint(store: SqlStore) -> None:
    store.start_rollout(fresh())
    store.delete(Ref("ep"), if_match=None, now=6.0)
    store.remove([Ref("ep")], now=7.0)
    assert store.active_rollouts() == []
    store.put_endpoint({"name": "ep"}, if_match=None, if_none_match=False, now=8.0)
    assert store.rollouts("ep") == []
