"""Who uses a model version, and when it was last used, on each database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amphitrite.controlplane.core.observed.status import Ref
from amphitrite.controlplane.store.assets.model_store import ModelStore
from amphitrite.controlplane.store.state.database import SqlStore

ARM = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"


def put(store: SqlStore, name: str, version: str, now: float, **fields: Any) -> None:
    document = {"name": name, "endpoint_name": "Pictures", "model": f"{ARM}/models/m/versions/{version}", **fields}
    model = {"name": "M", "version": version, "digest": f"d{version}", "model_names": ["m"]}
    store.put_deployment("pictures", document, model, if_match=None, if_none_match=False, now=now)


def used(models: ModelStore) -> dict[str, float | None]:
    return {one.version: one.used_at for one in models.list_all()}


def test_a_use_counts_from_its_beginning_to_its_end(
    store: SqlStore, models: ModelStore, register: Callable[..., Any]
) -> None:
    for version in ("1", "2", "3"):
        register("m", version, {"m/1/model.onnx": b"x"})
    assert used(models) == {"1": None, "2": None, "3": None}
    store.put_endpoint({"name": "Pictures"}, if_match=None, if_none_match=False, now=1.0)
    put(store, "blue", "1", 2.0)
    assert used(models) == {"1": 2.0, "2": None, "3": None}
    put(store, "blue", "2", 3.0)
    assert used(models) == {"1": 3.0, "2": 3.0, "3": None}
    store.mark_models_used([("M", "2"), ("gone", "1")], now=4.0)
    assert used(models) == {"1": 3.0, "2": 4.0, "3": None}
    store.delete(Ref("pictures"), if_match=None, now=5.0)
    store.remove([Ref("pictures"), Ref("pictures", "blue")], now=6.0)
    assert used(models) == {"1": 3.0, "2": 6.0, "3": None}


def test_deployments_are_found_by_what_they_refer_to(store: SqlStore) -> None:
    store.put_endpoint({"name": "Pictures"}, if_match=None, if_none_match=False, now=1.0)
    put(store, "blue", "1", 2.0)
    put(store, "Green", "2", 2.0, environment=f"{ARM}/environments/e/versions/1")
    store.delete(Ref("pictures", "blue"), if_match=None, now=3.0)
    models = [("Pictures/blue", f"{ARM}/models/m/versions/1"), ("Pictures/Green", f"{ARM}/models/m/versions/2")]
    assert store.list_references("model") == models
    assert store.list_references("environment") == [("Pictures/Green", f"{ARM}/environments/e/versions/1")]


def test_the_database_says_what_it_takes(store: SqlStore) -> None:
    place, size = store.space()
    assert place == store.database.place and size > 10_000
