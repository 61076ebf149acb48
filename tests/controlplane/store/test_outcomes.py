"""What the reconciler's verbs do: statuses, operations, routing table, removal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from amphitrite.controlplane.core.desired.resources import ModelReference
from amphitrite.controlplane.core.observed.status import Ref, Status
from amphitrite.controlplane.store.state import operation_rows
from amphitrite.controlplane.store.state.database import SqlStore
from amphitrite.dataplane.table.routing_table import Cluster, Route, RoutingTable, Secret
from amphitrite.schemas.errors import Error

EP, BLUE = Ref("ep1"), Ref("ep1", "blue")
MODEL = {"name": "m", "version": "1", "digest": "d1", "model_names": ["a", "b"]}
BROKEN = Error("ResourceNotReady", "onnx: bad graph", hint="see the log")


def put(store: SqlStore, ref: Ref = EP, **fields: Any) -> str:
    """Create or change; the operation's id."""
    preconditions: Any = {"if_match": None, "if_none_match": False, "now": 1.0}
    if ref.deployment is None:
        return store.put_endpoint({"name": ref.endpoint, **fields}, **preconditions)[1].id
    document = {"name": ref.deployment, "instance_type": "Standard_DS3_v2", **fields}
    return store.put_deployment(ref.endpoint, document, MODEL, **preconditions)[1].id


def test_progress_is_noted_when_it_changes_and_then_ends(store: SqlStore) -> None:
    operation = put(store)
    told = [("Starting", "0 of 2"), ("Starting", "0 of 2"), ("Starting", "1 of 2"), ("Routing", "")]
    for at, (phase, message) in enumerate(told):
        store.record({EP: Status("Creating", 0, phase, message)}, now=float(at))
    store.record({EP: Status("Succeeded", 1, "Ready", "", facts={"engine": "Triton"})}, now=9.0)
    found = store.get_operation(operation)
    assert found.phases == (
        ("Starting", "0 of 2", 0.0),
        ("Starting", "1 of 2", 2.0),
        ("Routing", "", 3.0),
        ("Ready", "", 9.0),
    )
    assert (found.status, found.ended_at) == ("Succeeded", 9.0)
    assert store.get_endpoint("ep1").status == Status("Succeeded", 1, "Ready", "", facts={"engine": "Triton"})


def test_a_failure_gives_its_error_to_the_operation(store: SqlStore) -> None:
    operation = put(store)
    store.record({EP: Status("Failed", 1, "Failed", "m", BROKEN)}, now=2.0)
    found = store.get_operation(operation)
    assert (found.status, found.error) == ("Failed", BROKEN)
    assert store.get_endpoint("ep1").status.error == BROKEN


def test_a_late_outcome_does_not_hide_the_newer_change(store: SqlStore) -> None:
    first = put(store)
    second = put(store, description="x")
    store.record({EP: Status("Succeeded", 1, "Ready")}, now=2.0)
    status = store.get_endpoint("ep1").status
    assert (status.state, status.observed_generation) == ("Updating", 1)
    assert [store.get_operation(o).status for o in (first, second)] == ["Succeeded", "InProgress"]
    assert store.get_operation(second).phases == ()
    store.record({EP: Status("Succeeded", 2, "Ready")}, now=3.0)
    assert store.get_operation(second).status == "Succeeded"


def test_one_outcome_ends_all_changes_up_to_it(store: SqlStore) -> None:
    ended = [put(store), put(store, description="x")]
    store.record({EP: Status("Failed", 2, "Failed", "m", BROKEN)}, now=2.0)
    assert [store.get_operation(o).status for o in ended] == ["Failed", "Failed"]


def test_observed_generation_never_goes_back(store: SqlStore) -> None:
    put(store)
    store.record({EP: Status("Succeeded", 1)}, now=2.0)
    store.record({EP: Status("Updating", 0)}, now=3.0)
    assert store.load_world().endpoints[0].observed_generation == 1


def test_a_deletion_ends_only_when_removed(store: SqlStore) -> None:
    put(store)
    change = put(store, BLUE)
    deletion = store.delete(BLUE, if_match=None, now=2.0)
    assert deletion is not None
    store.record({BLUE: Status("Deleting", 2, "Draining"), EP: Status("Succeeded", 1)}, now=3.0)
    store.record({BLUE: Status("Succeeded", 1, "Ready")}, now=3.5)
    assert [store.get_operation(o).status for o in (change, deletion.id)] == ["InProgress", "InProgress"]
    assert store.get_deployment("ep1", "blue").status.state == "Deleting"
    store.remove([BLUE, EP], now=4.0)
    assert [store.get_operation(o).status for o in (change, deletion.id)] == ["Canceled", "Succeeded"]
    assert store.list_deployments("ep1") == []
    assert store.get_endpoint("ep1").name == "ep1"  # It was not marked.


def test_an_endpoint_goes_after_its_deployments(store: SqlStore) -> None:
    put(store)
    put(store, BLUE)
    store.delete(EP, if_match=None, now=2.0)
    store.remove([EP], now=3.0)
    assert [r.name for r in store.list_endpoints()] == ["ep1"]
    store.remove([EP, BLUE], now=4.0)
    assert store.list_endpoints() == []


def test_a_status_for_nothing_is_ignored(store: SqlStore) -> None:
    store.record({EP: Status("Succeeded", 1), BLUE: Status("Failed", 1, error=BROKEN)}, now=1.0)
    store.remove([EP, BLUE], now=2.0)
    assert store.list_endpoints() == []


def test_the_world_is_what_was_put(store: SqlStore) -> None:
    put(store, traffic={"Blue": 100})
    put(store, BLUE, instance_count=2, environment_variables={"B": "2", "A": 1})
    store.record({BLUE: Status("Succeeded", 1)}, now=2.0)
    world = store.load_world()
    (endpoint,), (deployment,) = world.endpoints, world.deployments
    assert endpoint.traffic == (("blue", 100),) and endpoint.keys == store.get_keys("ep1")
    assert deployment.workload.model == ModelReference("m", "1", "d1", ("a", "b"))
    assert deployment.workload.environment_variables == (("A", "1"), ("B", "2"))
    assert (deployment.instance_count, deployment.observed_generation, deployment.ever_succeeded) == (2, 1, True)
    assert world.table == RoutingTable(0)


def test_what_is_remembered_is_what_another_process_reads(store: SqlStore) -> None:
    """Each step is written by a store with a memory of its own."""
    one = RoutingTable(0, clusters=(Cluster("c", (), 1, 1.0),))
    steps: list[Callable[[SqlStore], object]] = [
        lambda s: put(s, traffic={"blue": 100}),
        lambda s: put(s, BLUE),
        lambda s: s.publish(one),
        lambda s: s.record({BLUE: Status("Succeeded", 1)}, now=2.0),
        lambda s: put(s, BLUE, instance_count=2),
        lambda s: s.regenerate_key("ep1", "primary", now=3.0),
        lambda s: s.publish(RoutingTable(0)),
        lambda s: s.delete(BLUE, if_match=None, now=4.0),
        lambda s: s.remove([BLUE], now=5.0),
        lambda s: put(s, BLUE, instance_count=3),
        lambda s: s.delete(EP, if_match=None, now=6.0),
        lambda s: s.publish(one, above=9),
        lambda s: s.remove([EP, BLUE], now=7.0),
    ]
    seen = [store.load_world()]
    for step in steps:
        step(SqlStore(store.database))
        seen.append(store.load_world())
        assert seen[-1] == SqlStore(store.database).load_world()
        assert seen[-1] != seen[-2]
        assert store.published() == SqlStore(store.database).published()


def test_the_table_gets_a_version_with_each_change(store: SqlStore) -> None:
    route = Route("ep1", (Secret("k"),), ())
    empty, one = RoutingTable(0), RoutingTable(99, (route,), (Cluster("c", (), 1, 1.0),))
    versions = [store.publish(table).version for table in (empty, empty, one, one, empty)]
    assert versions == [1, 1, 2, 2, 3]
    assert store.load_world().table == RoutingTable(3)


def test_a_table_goes_beyond_what_a_proxy_has_from_elsewhere(store: SqlStore) -> None:
    one = RoutingTable(0, clusters=(Cluster("c", (), 1, 1.0),))
    wanted = [(RoutingTable(0), 0), (RoutingTable(0), 7), (RoutingTable(0), 8), (RoutingTable(0), 7), (one, 7)]
    assert [store.publish(table, above=above).version for table, above in wanted] == [1, 8, 8, 8, 9]


@pytest.mark.parametrize(("days", "kept"), [(6.9, True), (7.1, False)])
def test_ended_operations_are_kept_for_a_week(store: SqlStore, days: float, kept: bool) -> None:
    ended, still_open = put(store), put(store, BLUE)
    store.record({EP: Status("Succeeded", 1)}, now=1.0)
    now = 1.0 + days * 86400
    store.put_endpoint({"name": "other"}, if_match=None, if_none_match=False, now=now)
    assert store.get_operation(still_open).status == "InProgress"
    if kept:
        assert store.get_operation(ended).status == "Succeeded"
    else:
        with pytest.raises(Error, match=r"operation .* does not exist"):
            store.get_operation(ended)


def test_progress_is_bounded(store: SqlStore) -> None:
    operation = put(store)
    for attempt in range(operation_rows.MAX_PHASES + 5):
        store.record({EP: Status("Creating", 0, "Retrying", f"attempt {attempt}")}, now=float(attempt))
    phases = store.get_operation(operation).phases
    assert len(phases) == operation_rows.MAX_PHASES
    assert phases[0][1] == "attempt 0" and phases[-1][1] == f"attempt {operation_rows.MAX_PHASES + 4}"
