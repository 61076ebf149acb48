"""The routing table as a value: it refuses to contradict itself, travels as JSON, and keeps its
secrets from print."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest

from amphitrite.controlplane.core.desired.resources import (
    CORS,
    RETRY,
    deployment_from_document,
    endpoint_from_document,
    workload_spec,
)
from amphitrite.controlplane.core.planning.routing import routing_table, scoring_path
from amphitrite.controlplane.core.planning.supply import supply
from amphitrite.dataplane.table.json_codec import from_json, to_json
from amphitrite.dataplane.table.routing_table import (
    Address,
    Cluster,
    Comparison,
    Route,
    RoutingTable,
    Secret,
    SocketAddress,
    Target,
)

from .builders import KEYS, NOW, instance, model, table, workload

TARGET = Target("blue", None, 5.0)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"routes": (Route("b", (), ()), Route("a", (), ()))}, "sorted by name"),
        ({"clusters": (Cluster("a", (), 1, 1), Cluster("a", (), 1, 1))}, "each name once"),
        ({"routes": (Route("a", (), (Target("blue", "gone", 5.0),)),)}, "names no cluster: gone"),
    ],
)
def test_a_table_that_contradicts_itself_cannot_be_made(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RoutingTable(1, **parts)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (((TARGET, TARGET),), "targets must be sorted"),
        (((TARGET,), (("blue", 90),)), "does not sum to 100"),
        (((TARGET,), (("green", 100),)), "the share green=100 is not possible"),
        (((TARGET,), (("blue", 0),)), "the share blue=0 is not possible"),
        (((Target("blue", None, 5.0, sequences=True, retry_lost=True),),), "repeats lost requests"),
    ],
)
def test_a_route_that_contradicts_itself_cannot_be_made(parts: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Route("a", (), *parts)


def test_it_comes_back_from_json_as_it_was() -> None:
    one = table(instance(workload()), instance(workload("green")), split=(("blue", 90), ("green", 10)), version=7)
    assert from_json(json.loads(json.dumps(to_json(one)))) == one
    both = Address("10.0.0.1", 8000), Address("10.0.0.1", 8000, 8001)
    mixed = RoutingTable(1, clusters=(Cluster("a", tuple(sorted(reversed(both))), 1, 1.0),))
    assert (from_json(json.loads(json.dumps(to_json(mixed)))), mixed.clusters[0].addresses) == (mixed, both)


def test_tcp_and_unix_sockets_are_addresses_of_one_cluster() -> None:
    ordered = (
        Address("10.0.0.1", 8000, 8001),
        Address("10.0.0.2", 1),
        SocketAddress("/run/a/http"),
        SocketAddress("/run/a/http", "/run/a/grpc"),
        SocketAddress("/run/b/http"),
    )
    for given in itertools.permutations(ordered):
        assert tuple(sorted(given)) == ordered
    mixed = RoutingTable(1, clusters=(Cluster("a", ordered, 1, 1.0),))
    assert from_json(json.loads(json.dumps(to_json(mixed)))) == mixed
    assert mixed.clusters[0].grpc
    assert not Cluster("a", (SocketAddress("/run/b/http"),), 1, 1.0).grpc


def test_a_cluster_is_asked_by_grpc_unless_all_that_it_has_cannot() -> None:
    without, by_grpc = Address("10.0.0.1", 8000), Address("10.0.0.2", 8000, 8001)
    said = {addresses: Cluster("a", addresses, 1, 1.0).grpc for addresses in ((), (without,), (without, by_grpc))}
    assert said == {(): True, (without,): False, (without, by_grpc): True}


def test_what_documents_say_of_requests_is_in_the_table() -> None:
    known: dict[str, Any] = {"generation": 1, "observed_generation": 0, "deleting": False}
    asked = {"name": "ep", "properties": {CORS: "https://a.example, *,https://a.example"}}
    wanted = deployment_from_document(
        {"name": "blue", "properties": {RETRY: "lost-requests"}},
        endpoint="ep", model=model(), ever_succeeded=False, changed_at=0.0, **known,
    )  # fmt: skip
    made = endpoint_from_document(asked, keys=KEYS, **known)
    keeping = replace(wanted, sequences=True)
    for deployment, again in ((wanted, True), (keeping, False), (replace(keeping, number_ids=True), False)):
        served = supply(deployment, (), None, NOW)
        route = routing_table([made], {"ep": [served]}, RoutingTable(0)).routes[0]
        assert route.cors == ("https://a.example", "*")
        assert route.targets[0].retry_lost is again
        assert route.targets[0].number_ids is deployment.number_ids
        assert from_json(json.loads(json.dumps(to_json(RoutingTable(1, (route,)))))).routes == (route,)


@pytest.mark.parametrize(
    ("settings", "wait_s"),
    [
        ({}, 0.0),
        ({"max_queue_wait_ms": 0}, 0.0),
        # The file of Azure's own examples.
        ({"request_timeout_ms": 3000, "max_concurrent_requests_per_instance": 1, "max_queue_wait_ms": 500}, 0.5),
        ({"request_timeout_ms": 300, "max_queue_wait_ms": 500}, 0.3),
        ({"max_queue_wait_ms": 180_000}, 5.0),
    ],
)
def test_requests_wait_where_their_deployment_says_so_and_no_longer_than_they_may_take(
    settings: dict[str, int], wait_s: float
) -> None:
    known: dict[str, Any] = {"generation": 1, "observed_generation": 0, "deleting": False}
    document = {"name": "blue", "request_settings": settings}
    wanted = deployment_from_document(
        document, endpoint="ep", model=model(), ever_succeeded=False, changed_at=0.0, **known
    )
    published = Target("blue", wanted.workload.name, 5.0)
    served = supply(wanted, (instance(wanted.workload),), published, NOW)
    made = routing_table(
        [endpoint_from_document({"name": "ep"}, keys=KEYS, **known)], {"ep": [served]}, RoutingTable(0)
    )
    assert [(t.queue_wait_s, c.queue) for t, c in zip(made.routes[0].targets, made.clusters, strict=True)] == [
        (wait_s, wait_s > 0)
    ]
    assert from_json(json.loads(json.dumps(to_json(made)))) == made
    assert ("queue" in json.dumps(to_json(made))) is (wait_s > 0)


def test_answers_are_compared_where_both_deployments_can_answer_by_themselves() -> None:
    known: dict[str, Any] = {"generation": 1, "observed_generation": 0, "deleting": False}
    wanted = Comparison("blue", "green", 10, 0.5)
    asked = replace(endpoint_from_document({"name": "ep"}, keys=KEYS, **known), comparison=wanted)

    def compared(sequences: bool = False, serving: bool = True) -> Comparison | None:
        supplies = []
        for name in ("blue", "green"):
            made = deployment_from_document(
                {"name": name}, endpoint="ep", model=model(), ever_succeeded=False, changed_at=0.0, **known
            )
            made = replace(made, sequences=sequences and name == "green")
            instances = (instance(made.workload),) if serving or name == "blue" else ()
            supplies.append(supply(made, instances, None, NOW))
        return routing_table([asked], {"ep": supplies}, RoutingTable(0)).routes[0].comparison

    assert compared() == wanted
    assert compared(sequences=True) is None
    assert compared(serving=False) is None


def test_secrets_do_not_print() -> None:
    route = Route("ep", (Secret("hush"),), ())
    assert "hush" not in f"{route!r} {route} {Secret('hush')}"
    assert Secret("hush").reveal() == "hush"


@pytest.mark.parametrize(
    ("names", "chosen", "path", "reason"),
    [
        (("m",), None, "/v2/models/m/infer", ""),
        (("a", "b"), None, None, "serves 2 models (a, b)"),
        (("a", "b"), "b", "/v2/models/b/infer", ""),
        (("a", "b"), "c", None, "chooses the scoring model 'c'"),
    ],
)
def test_where_a_post_to_the_scoring_address_goes(
    names: tuple[str, ...], chosen: str | None, path: str | None, reason: str
) -> None:
    found, why = scoring_path(workload_spec("ep", "blue", model(1, names), "Standard_DS3_v2", {}), chosen)
    assert found == path
    assert reason in why
