"""The server's side of one delta stream, message by message."""

from __future__ import annotations

from collections.abc import Mapping

from amphitrite.dataplane.envoy.translate.resources import CLUSTER, ENDPOINTS, ROUTES, SCOPES, Resource
from amphitrite.dataplane.envoy.xds.delta_stream import DeltaStream, Rejection, Request, Response, Snapshot


def snapshot(**versions: Mapping[str, str]) -> Snapshot:
    """``snapshot(clusters={"a": "1"})``: names and versions by kind."""
    kinds = {"clusters": CLUSTER, "endpoints": ENDPOINTS, "routes": ROUTES, "scopes": SCOPES}
    return {kinds[kind]: {n: Resource(None, v, dict) for n, v in named.items()} for kind, named in versions.items()}


def told(responses: list[Response]) -> list[tuple[str, list[tuple[str, str]], list[str]]]:
    return [(r.type_url.rpartition(".")[2], [(n, x.version) for n, x in r.changed], list(r.removed)) for r in responses]


def send(stream: DeltaStream, wanted: Snapshot) -> list[tuple[str, list[tuple[str, str]], list[str]]]:
    """What is sent now; every message is accepted."""
    responses = list(stream.pending(wanted))
    for response in responses:
        stream.receive(Request(response.type_url, nonce=response.nonce))
    return told(responses)


def test_all_of_a_type_first_then_only_what_changed() -> None:
    stream = DeltaStream()
    stream.receive(Request(CLUSTER))
    assert send(stream, snapshot(clusters={"a": "1", "b": "1"})) == [("Cluster", [("a", "1"), ("b", "1")], [])]
    assert send(stream, snapshot(clusters={"a": "1", "b": "1"})) == []
    assert send(stream, snapshot(clusters={"a": "2"})) == [("Cluster", [("a", "2")], ["b"])]


def test_nothing_is_also_an_answer() -> None:
    """Envoy does not go on starting before it has been told that there is nothing."""
    stream = DeltaStream()
    stream.receive(Request(SCOPES))
    assert send(stream, {}) == [("ScopedRouteConfiguration", [], [])]
    assert send(stream, {}) == []


def test_names_that_are_asked_for() -> None:
    stream = DeltaStream()
    stream.receive(Request(ROUTES, subscribe=("a", "missing")))
    wanted = snapshot(routes={"a": "1", "b": "1"})
    assert send(stream, wanted) == [("RouteConfiguration", [("a", "1")], ["missing"])]
    stream.receive(Request(ROUTES, subscribe=("b",), unsubscribe=("a",)))
    assert send(stream, wanted) == [("RouteConfiguration", [("b", "1")], [])]
    assert stream.in_force(snapshot(routes={"b": "1"}), (ROUTES,))
    stream.receive(Request(ROUTES, subscribe=("b",)))
    assert send(stream, wanted) == [("RouteConfiguration", [("b", "1")], [])]


def test_reconnected_client_is_sent_only_what_it_lacks() -> None:
    stream = DeltaStream()
    stream.receive(Request(CLUSTER, resource_versions={"a": "1", "b": "1", "c": "1"}))
    wanted = snapshot(clusters={"a": "1", "b": "2"})
    assert send(stream, wanted) == [("Cluster", [("b", "2")], ["c"])]
    assert stream.in_force(wanted, (CLUSTER,))


def test_in_force_only_when_accepted() -> None:
    stream = DeltaStream()
    stream.receive(Request(CLUSTER))
    wanted = snapshot(clusters={"a": "1"})
    (response,) = stream.pending(wanted)
    assert not stream.in_force(wanted, (CLUSTER,))
    assert stream.receive(Request(CLUSTER, nonce=response.nonce)) is None
    assert stream.in_force(wanted, (CLUSTER,))


def test_refused_response_is_not_repeated_and_the_former_is_sent_again() -> None:
    stream = DeltaStream()
    stream.receive(Request(CLUSTER))
    good, bad = snapshot(clusters={"a": "1"}), snapshot(clusters={"a": "2"})
    send(stream, good)
    (response,) = stream.pending(bad)
    refusal = stream.receive(Request(CLUSTER, nonce=response.nonce, error="bad"))
    assert refusal == Rejection(CLUSTER, ("a",), "bad")
    assert list(stream.pending(bad)) == []
    assert not stream.in_force(bad, (CLUSTER,))
    assert send(stream, good) == [("Cluster", [("a", "1")], [])]
    assert stream.in_force(good, (CLUSTER,))


def test_changed_cluster_gets_its_addresses_again() -> None:
    """Envoy starts a changed cluster anew, which then waits for addresses."""
    stream = DeltaStream()
    stream.receive(Request(CLUSTER))
    stream.receive(Request(ENDPOINTS, subscribe=("a",)))
    send(stream, snapshot(clusters={"a": "1"}, endpoints={"a": "1"}))
    assert send(stream, snapshot(clusters={"a": "2"}, endpoints={"a": "1"})) == [
        ("Cluster", [("a", "2")], []),
        ("ClusterLoadAssignment", [("a", "1")], []),
    ]


def test_many_routes_travel_in_parts_and_clusters_together() -> None:
    """Envoy holds the first answer about clusters for all there are; of routes it knows which it
    has asked for."""
    names = [f"r{number:03}" for number in range(120)]
    wanted = snapshot(clusters=dict.fromkeys(names, "1"), routes=dict.fromkeys(names, "1"))
    stream = DeltaStream()
    stream.receive(Request(CLUSTER))
    stream.receive(Request(ROUTES, subscribe=(*names, "missing")))
    first, *parts = stream.pending(wanted)
    assert [name for name, _ in first.changed] == names
    assert [name for part in parts for name, _ in part.changed] == names
    assert [(len(part.changed), part.removed) for part in parts] == [(50, ()), (50, ()), (20, ("missing",))]
    for response in (first, *parts):
        assert not stream.in_force(wanted, (CLUSTER, ROUTES))
        stream.receive(Request(response.type_url, nonce=response.nonce))
    assert stream.in_force(wanted, (CLUSTER, ROUTES))


def test_a_client_is_empty_once_it_has_said_so_until_it_is_sent_something() -> None:
    new, former = DeltaStream(), DeltaStream()
    assert not new.empty
    new.receive(Request(CLUSTER))
    former.receive(Request(CLUSTER, resource_versions={"a": "1"}))
    assert (new.empty, former.empty) == (True, False)
    send(new, snapshot(clusters={"a": "1"}))
    assert not new.empty
