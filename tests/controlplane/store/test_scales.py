"""Scales in the database: which number is in force, who may write it, and what is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from amphitrite.controlplane.core.desired.scale_settings import TARGET_UTILIZATION
from amphitrite.controlplane.core.observed.status import Ref
from amphitrite.controlplane.core.scaling.scales import Scale, ScaleChange, ScaleEvent
from amphitrite.controlplane.store.reports.demand_samples import StoredSamples
from amphitrite.controlplane.store.state import scale_rows
from amphitrite.controlplane.store.state.database import SqlStore
from amphitrite.schemas.errors import Error

BLUE = Ref("ep", "blue")
BY = TARGET_UTILIZATION


def deploy(store: SqlStore, minimum: int = 1, maximum: int = 10, mode: str = "apply", **more: Any) -> None:
    settings = {"type": BY, "min_instances": minimum, "max_instances": maximum, "mode": mode}
    put(store, scale_settings=settings, **more)


def put(store: SqlStore, **more: Any) -> None:
    model = {"name": "m", "version": "1", "digest": "d", "model_names": ["m"]}
    document = {"name": "blue", "instance_type": "Standard_DS3_v2", **more}
    store.put_deployment("ep", document, model, if_match=None, if_none_match=False, now=1.0)


def count(store: SqlStore) -> int:
    return store.load_world().deployments[0].instance_count


def change(store: SqlStore, to: int, by: str = BY) -> ScaleChange:
    before = store.scales().get(BLUE)
    event = ScaleEvent(2.0, 0 if before is None else before.count, to, f"to {to}", by)
    return ScaleChange(BLUE, before, Scale(to, by, reason=event.reason, changed_at=2.0), event)


@pytest.fixture
def store(store: SqlStore) -> SqlStore:
    store.put_endpoint({"name": "ep"}, if_match=None, if_none_match=False, now=1.0)
    return store


def test_the_number_of_a_scaled_deployment_is_its_scale_within_the_limits(store: SqlStore) -> None:
    deploy(store, 2, 6)
    assert count(store) == 2
    store.set_scale(change(store, 5))
    assert count(store) == 5
    assert store.get_deployment("EP", "Blue").scale == replace(change(store, 5).after, version=2)
    assert [record.scale for record in store.list_deployments("ep")] == [store.scales()[BLUE]]
    deploy(store, 2, 4)
    assert count(store) == 4  # At once, and not when a scaler notices.
    put(store, instance_count=3)
    assert (count(store), store.scales()) == (3, {})
    deploy(store, 1, 10)
    assert count(store) == 3  # It goes on from what there is.


def test_a_number_that_is_only_recommended_is_not_in_force(store: SqlStore) -> None:
    deploy(store, mode="recommend", instance_count=4)
    store.set_scale(ScaleChange(BLUE, store.scales()[BLUE], Scale(4, BY, recommended=9)))
    assert count(store) == 4
    deploy(store)
    assert count(store) == 4


def test_another_scaler_sets_the_number_of_any_deployment(store: SqlStore) -> None:
    put(store, instance_count=4)
    store.set_scale(change(store, 7, by="office hours"))
    assert count(store) == 7
    put(store, instance_count=5)  # The document is kept; that scaler decides what becomes of it.
    assert count(store) == 7


def test_of_two_writers_of_one_version_one_fails(store: SqlStore) -> None:
    deploy(store)
    first, second = change(store, 2), change(store, 2)
    store.set_scale(first)
    with pytest.raises(Error, match="has changed since") as raised:
        store.set_scale(second)
    assert raised.value.code == "Conflict"
    assert [event.after for event in store.scale_events(BLUE)] == [2]


def test_the_newest_events_are_kept_until_the_deployment_goes(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale_rows, "KEPT_EVENTS", 3)
    deploy(store)
    for to in range(2, 8):
        store.set_scale(change(store, to))
    assert [event.after for event in store.scale_events(Ref("EP", "Blue"))] == [5, 6, 7]
    store.delete(BLUE, if_match=None, now=3.0)
    assert store.set_scale(change(store, 8)) is None
    store.remove([BLUE], now=4.0)
    assert store.scales() == {}
    deploy(store)
    assert (store.scale_events(BLUE), count(store)) == ([], 1)


def test_samples_are_read_in_the_order_of_commits_and_each_once(store: SqlStore) -> None:
    samples = StoredSamples(store.database)
    assert samples.put("a", 7, [["ep", "blue", 1.0]], 10.0)
    assert not samples.put("a", 7, [["ep", "blue", 1.0]], 10.5)
    assert samples.put("b", 7, [], 11.0)
    found = samples.since(0)
    assert [(one.id, one.agent, one.at, one.content) for one in found] == [
        (1, "a", 10.0, [["ep", "blue", 1.0]]), (2, "b", 11.0, []),
    ]  # fmt: skip
    samples.prune(100.0)
    samples.put("a", 8, [], 101.0)
    assert [one.id for one in samples.since(1)] == [2, 3]  # Ids never begin again.
