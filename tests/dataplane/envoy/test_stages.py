"""From one table to the next: what is published on the way, and when what is left behind is
drained."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amphitrite.dataplane.envoy.xds.drains import DrainTracker
from amphitrite.dataplane.envoy.xds.update_stages import (
    EMPTY,
    DrainTarget,
    Published,
    added_addresses,
    removal_step,
    routing_step,
    warming_step,
)
from amphitrite.dataplane.table.routing_table import Address, Cluster, Route, RoutingTable, Secret, Target

A, B, C = (Address("127.0.0.1", port) for port in (1, 2, 3))


def table(version: int, **clusters: tuple[int, tuple[Address, ...]]) -> RoutingTable:
    """Clusters by name: (max_requests, addresses). Each is a target of one route."""
    known = tuple(Cluster(n, a, m, 5.0) for n, (m, a) in sorted(clusters.items()))
    targets = tuple(Target(c.name, c.name, 5.0) for c in known)
    return RoutingTable(version, (Route("r", (Secret("k"),), targets),), known)


def seen(published: Published) -> dict[str, tuple[int, tuple[Address, ...], tuple[Address, ...]]]:
    return {n: (c.max_requests, c.addresses, published.draining.get(n, ())) for n, c in published.clusters.items()}


def test_new_clusters_come_first_and_old_ones_leave_last() -> None:
    first, second = table(1, x=(4, (A,))), table(2, y=(4, (B,)))
    at = routing_step(EMPTY, first)
    assert added_addresses(at, second) == (("y", B),)
    between = warming_step(at, second)
    assert between.table == first
    assert seen(between) == {"x": (4, (A,), ()), "y": (4, (B,), ())}
    after = routing_step(between, second)
    assert seen(after) == seen(between)
    assert after.unrouted() == {DrainTarget("x"): 5.0}
    assert seen(removal_step(after, {DrainTarget("x")})) == {"y": (4, (B,), ())}


def test_scale_in_keeps_the_address_and_the_settings_until_it_is_drained() -> None:
    at = routing_step(EMPTY, table(1, x=(8, (A, B))))
    after = routing_step(at, table(2, x=(4, (A,))))
    assert seen(after) == {"x": (8, (A,), (B,))}
    assert after.unrouted() == {DrainTarget("x", B): 5.0}
    assert seen(removal_step(after, {DrainTarget("x", B)})) == {"x": (4, (A,), ())}


def test_draining_address_that_is_wanted_again_comes_back() -> None:
    at = routing_step(routing_step(EMPTY, table(1, x=(8, (A, B)))), table(2, x=(8, (A,))))
    again = table(3, x=(8, (A, B)))
    assert added_addresses(at, again) == (("x", B),)
    assert seen(warming_step(at, again)) == {"x": (8, (A, B), ())}
    assert routing_step(warming_step(at, again), again).unrouted() == {}


def test_change_of_weights_prepares_nothing() -> None:
    first = table(1, x=(4, (A,)))
    assert added_addresses(routing_step(EMPTY, first), first) == ()


addresses = st.sets(st.sampled_from([A, B, C]), min_size=1).map(lambda s: tuple(sorted(s)))
tables = st.dictionaries(st.sampled_from("xyz"), st.tuples(st.integers(1, 3), addresses)).map(
    lambda clusters: table(1, **clusters)
)


@given(st.lists(tables, max_size=6))
def test_any_row_of_tables_ends_in_the_last(row: list[RoutingTable]) -> None:
    at = EMPTY
    for wanted in row:
        before, at = at, routing_step(warming_step(at, wanted), wanted)
        for cluster in wanted.clusters:
            assert at.clusters[cluster.name].addresses == cluster.addresses
            assert not set(at.draining.get(cluster.name, ())) & set(cluster.addresses)
        # Nothing that may have requests in flight disappears by itself.
        assert set(before.clusters) <= set(at.clusters)
    done = removal_step(at, set(at.unrouted()))
    assert done.unrouted() == {}
    assert {n: c for n, c in done.clusters.items()} == {c.name: c for c in (row[-1].clusters if row else ())}


def test_drained_after_a_quiet_moment_or_at_the_deadline() -> None:
    drains, x, y = DrainTracker(), DrainTarget("x"), DrainTarget("y", A)
    drains.acknowledge({x: 10.0, y: 10.0}, before=4, now=0.0)
    assert drains.drained_version(5) == 4
    assert drains.observe({x: 0, y: 1}, 1.0) == set()
    assert drains.observe({x: 0, y: 1}, 1.4) == {x}
    assert drains.observe({y: 0}, 2.0) == set()
    assert drains.observe({y: 2}, 2.2) == set()  # a retry was under way: not quiet after all
    assert drains.observe({y: 0}, 2.4) == set()
    assert drains.observe({}, 3.0) == set()  # Envoy did not answer
    assert drains.drained_version(5) == 4
    assert drains.observe({}, 10.0) == {y}
    assert drains.drained_version(5) == 5


def test_newer_table_waits_for_what_an_older_one_left() -> None:
    drains, x, y = DrainTracker(), DrainTarget("x"), DrainTarget("y")
    drains.acknowledge({x: 10.0}, before=1, now=0.0)
    drains.acknowledge({x: 10.0, y: 10.0}, before=2, now=5.0)
    assert drains.drained_version(3) == 1
    assert drains.observe({y: 1}, 10.0) == {x}  # counted from its own acknowledgement
    assert drains.drained_version(3) == 2
    drains.acknowledge({}, before=3, now=11.0)  # y is wanted again
    assert drains.drained_version(4) == 4


def test_what_an_earlier_agent_left_is_held_back_for_its_time() -> None:
    drains = DrainTracker()
    drains.add_unknown(before=6, timeout_s=3.0, now=0.0)
    drains.acknowledge({}, before=0, now=0.5)
    assert drains.drained_version(7) == 6
    assert drains.observe({}, 2.9) == set()
    assert drains.drained_version(7) == 6
    drains.observe({}, 3.0)
    assert drains.drained_version(7) == 7
