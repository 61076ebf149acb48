"""What the API's verbs do to generation, etag, state and operation."""

from __future__ import annotations

from typing import Any

import pytest

from amphitrite.controlplane.core.observed.status import Ref, Status
from amphitrite.controlplane.store.state.database import SqlStore
from amphitrite.controlplane.store.state.store import Operation, Record
from amphitrite.schemas.errors import Error

MODEL = {"name": "m", "version": "1", "digest": "d1", "model_names": ["model_1"]}
BLUE = {"name": "blue", "endpoint_name": "ep1", "instance_type": "Standard_DS3_v2", "instance_count": 1}
EP, DEPLOYMENT = Ref("ep1"), Ref("ep1", "blue")


def put_endpoint(store: SqlStore, name: str = "ep1", now: float = 1.0, **fields: Any) -> tuple[Record, Operation]:
    match = fields.pop("if_match", None)
    new_only = fields.pop("if_none_match", False)
    return store.put_endpoint({"name": name, **fields}, if_match=match, if_none_match=new_only, now=now)


def put_deployment(store: SqlStore, model: Any = None, now: float = 1.0, **fields: Any) -> tuple[Record, Operation]:
    return store.put_deployment("EP1", {**BLUE, **fields}, model or MODEL, if_match=None, if_none_match=False, now=now)


def observe(store: SqlStore, ref: Ref, state: Any, generation: int, error: Error | None = None) -> None:
    store.record({ref: Status(state, generation, state, "", error)}, now=5.0)


def test_a_new_endpoint_is_creating_and_has_two_keys(store: SqlStore) -> None:
    record, operation = put_endpoint(store, "Ep1", auth_mode="key")
    assert (record.ref, record.name, record.generation, record.status) == (EP, "Ep1", 1, Status("Creating", 0))
    assert (operation.verb, operation.status, operation.generation) == ("create", "InProgress", 1)
    keys = store.get_keys("EP1")
    assert all(len(key.reveal()) == 32 for key in keys) and keys[0] != keys[1]
    assert store.get_operation(operation.id) == operation


@pytest.mark.parametrize(
    ("fields", "model", "state", "changes"),
    [
        ({}, MODEL, "Succeeded", False),
        ({"name": "BLUE"}, MODEL, "Succeeded", False),
        ({"instance_count": 3}, MODEL, "Scaling", True),
        ({"instance_type": "Standard_F4s_v2"}, MODEL, "Updating", True),
        ({"instance_type": "Standard_F4s_v2", "instance_count": 3}, MODEL, "Updating", True),
        ({}, {**MODEL, "digest": "d2"}, "Updating", True),
        ({"instance_count": 3}, {**MODEL, "digest": "d2"}, "Updating", True),
        ({"app_insights_enabled": True}, MODEL, "Updating", True),
    ],
)
def test_what_counts_as_a_change(store: SqlStore, fields: Any, model: Any, state: str, changes: bool) -> None:
    put_endpoint(store)
    before, _ = put_deployment(store)
    observe(store, DEPLOYMENT, "Succeeded", 1)
    after, operation = put_deployment(store, model, now=9.0, **fields)
    assert (after.status.state, after.generation) == (state, 2 if changes else 1)
    assert (after.etag != before.etag, after.modified_at == 9.0) == (changes, changes)
    assert operation.status == ("InProgress" if changes else "Succeeded")
    assert operation.ended_at == (None if changes else 9.0)
    assert (after.created_at, after.name) == (1.0, "blue")


def test_true_is_not_one(store: SqlStore) -> None:
    put_endpoint(store, tags={"a": 1})
    assert put_endpoint(store, tags={"a": True})[0].generation == 2


def test_a_failed_change_is_tried_again_when_repeated(store: SqlStore) -> None:
    put_endpoint(store)
    first, _ = put_deployment(store)
    observe(store, DEPLOYMENT, "Failed", 1, Error("ResourceNotReady", "no"))
    again, operation = put_deployment(store)
    assert (again.generation, again.status, again.etag) == (2, Status("Creating", 1), first.etag)
    assert (operation.status, operation.generation) == ("InProgress", 2)


def test_a_repeated_change_under_way_ends_with_it(store: SqlStore) -> None:
    put_endpoint(store)
    again, operation = put_endpoint(store)
    assert (again.generation, operation.generation, operation.status) == (1, 1, "InProgress")
    observe(store, EP, "Succeeded", 1)
    assert store.get_operation(operation.id).status == "Succeeded"


@pytest.mark.parametrize(
    ("exists", "if_match", "if_none_match", "refused"),
    [
        (True, '"1"', False, False),
        (True, '"7", "1"', False, False),
        (True, "*", False, False),
        (True, '"7"', False, True),
        (True, 'W/"1"', False, True),
        (True, None, True, True),
        (False, None, True, False),
        (False, "*", False, True),
        (False, '"1"', False, True),
    ],
)
def test_preconditions(store: SqlStore, exists: bool, if_match: str | None, if_none_match: bool, refused: bool) -> None:
    if exists:
        put_endpoint(store)
    if not refused:
        put_endpoint(store, if_match=if_match, if_none_match=if_none_match, description="x")
        return
    with pytest.raises(Error) as caught:
        put_endpoint(store, if_match=if_match, if_none_match=if_none_match, description="x")
    assert caught.value.code == "PreconditionFailed"


def test_deleting_an_endpoint_marks_its_deployments(store: SqlStore) -> None:
    put_endpoint(store)
    put_deployment(store)
    operation = store.delete(Ref("EP1"), if_match=None, now=2.0)
    assert operation is not None and operation.verb == "delete"
    assert store.delete(EP, if_match=None, now=3.0) == operation
    assert [r.status.state for r in (store.get_endpoint("ep1"), store.get_deployment("ep1", "BLUE"))] == [
        "Deleting",
        "Deleting",
    ]
    assert store.load_world().deployments[0].deleting
    for change in (put_endpoint, put_deployment):
        with pytest.raises(Error, match="is being deleted") as caught:
            change(store, description="x")
        assert caught.value.code == "Conflict"
    with pytest.raises(Error, match="is being deleted"):
        store.regenerate_key("ep1", "primary", now=3.0)


def test_deleting_what_is_not_there_is_nothing(store: SqlStore) -> None:
    assert store.delete(EP, if_match=None, now=1.0) is None
    assert store.delete(DEPLOYMENT, if_match=None, now=1.0) is None


def test_deleting_asks_for_the_etag(store: SqlStore) -> None:
    put_endpoint(store)
    with pytest.raises(Error) as caught:
        store.delete(EP, if_match='"0"', now=1.0)
    assert caught.value.code == "PreconditionFailed"
    assert not store.get_endpoint("ep1").deleting


def test_generations_go_on_after_a_deletion(store: SqlStore) -> None:
    record, _ = put_endpoint(store)
    store.delete(EP, if_match=None, now=2.0)
    store.remove([EP], now=3.0)
    again, _ = put_endpoint(store, now=4.0)
    assert again.generation == 3 and again.etag != record.etag
    observe(store, EP, "Succeeded", 1)  # It speaks of the former endpoint.
    assert store.get_endpoint("ep1").status == Status("Creating", 0)


def test_a_regenerated_key_is_new_and_the_other_stays(store: SqlStore) -> None:
    record, _ = put_endpoint(store)
    primary, secondary = store.get_keys("ep1")
    operation = store.regenerate_key("Ep1", "secondary", now=2.0)
    assert store.get_keys("ep1")[0] == primary and store.get_keys("ep1")[1] != secondary
    assert (operation.verb, operation.generation) == ("regenerateKeys", 2)
    after = store.get_endpoint("ep1")
    assert (after.etag, after.status.state) == (record.etag, "Updating")


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.get_endpoint("none"),
        lambda store: store.get_keys("none"),
        lambda store: store.list_deployments("none"),
        lambda store: store.get_deployment("ep1", "none"),
        lambda store: store.get_operation("none"),
        lambda store: store.regenerate_key("none", "primary", now=1.0),
        lambda store: store.put_deployment("none", BLUE, MODEL, if_match=None, if_none_match=False, now=1.0),
    ],
)
def test_what_is_not_there_is_not_found(store: SqlStore, call: Any) -> None:
    put_endpoint(store)
    with pytest.raises(Error) as caught:
        call(store)
    assert caught.value.code == "ResourceNotFound" and caught.value.target


def test_lists_are_sorted_and_names_compare_without_case(store: SqlStore) -> None:
    for name in ("Zeta", "alpha", "Mid"):
        put_endpoint(store, name)
    assert [r.name for r in store.list_endpoints()] == ["alpha", "Mid", "Zeta"]
    put_endpoint(store, "ALPHA", description="x")
    assert [r.name for r in store.list_endpoints()] == ["alpha", "Mid", "Zeta"]
    assert store.get_endpoint("aLPHA").document == {"name": "alpha", "description": "x"}
