"""The steps from what Envoy has to what a new table wants, make before break.

Decides which clusters and addresses are published at each step: first what is new beside what is
old, then the new routes while what they no longer name drains. No request meets a half-made state.
Pure. Must not know Envoy, time or how a step is carried out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from amphitrite.dataplane.table.routing_table import Cluster, InstanceAddress, RoutingTable


@dataclass(frozen=True, slots=True, order=True)
class DrainTarget:
    """One address of a cluster that stays, or (``address`` None) a whole cluster."""

    cluster: str
    address: InstanceAddress | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """What the proxy should have: the routes of ``table``, and clusters, which may be more than the
    table's.

    ``clusters``, by name, hold the addresses that get new requests. ``draining`` holds those that
    only finish their requests.
    """

    table: RoutingTable
    clusters: Mapping[str, Cluster]
    draining: Mapping[str, tuple[InstanceAddress, ...]]

    def unrouted(self) -> dict[DrainTarget, float]:
        """What the table does not name, with the seconds that its requests may take to end."""
        named = {c.name: c for c in self.table.clusters}
        out = {
            DrainTarget(name): cluster.drain_timeout_s for name, cluster in self.clusters.items() if name not in named
        }
        for name, addresses in self.draining.items():
            if name in named:
                out.update({DrainTarget(name, a): named[name].drain_timeout_s for a in addresses})
        return out


EMPTY = Published(RoutingTable(0), {}, {})


def added_addresses(before: Published, table: RoutingTable) -> tuple[tuple[str, InstanceAddress], ...]:
    """The (cluster, address) pairs that get no requests yet and would get them by ``table``."""
    return tuple(
        (cluster.name, address)
        for cluster in table.clusters
        if before.clusters.get(cluster.name) is not cluster
        for address in cluster.addresses
        if cluster.name not in before.clusters or address not in before.clusters[cluster.name].addresses
    )


def warming_step(before: Published, table: RoutingTable) -> Published:
    """The old routes, with the clusters and addresses of both tables. (Envoy calls it warming.)"""
    clusters = dict(before.clusters)
    for cluster in table.clusters:
        old = before.clusters.get(cluster.name)
        addresses = set(cluster.addresses) | set(old.addresses if old is not None else ())
        clusters[cluster.name] = replace(old or cluster, addresses=tuple(sorted(addresses)))
    return Published(before.table, clusters, _still_draining(before.draining, clusters))


def routing_step(before: Published, table: RoutingTable) -> Published:
    """The new routes. What they no longer name stays, without new requests, until
    :func:`removal_step`.

    A cluster with a draining address keeps its other settings until then. A changed cluster would
    start anew in Envoy, and the requests in flight on the old one could no longer be counted.
    """
    clusters = dict(before.clusters)
    draining: dict[str, tuple[InstanceAddress, ...]] = {}
    for cluster in table.clusters:
        old = before.clusters.get(cluster.name)
        if old is cluster and cluster.name not in before.draining:
            continue
        removed = set(old.addresses if old is not None else ()) | set(before.draining.get(cluster.name, ()))
        removed -= set(cluster.addresses)
        draining[cluster.name] = tuple(sorted(removed))
        clusters[cluster.name] = replace(old, addresses=cluster.addresses) if old and removed else cluster
    for name, addresses in before.draining.items():
        draining.setdefault(name, addresses)
    return Published(table, clusters, {name: removed for name, removed in draining.items() if removed})


def removal_step(published: Published, removed: set[DrainTarget]) -> Published:
    """The same without the drained targets. A cluster with nothing left to drain gets the table's
    settings."""
    draining = {
        name: tuple(a for a in addresses if DrainTarget(name, a) not in removed)
        for name, addresses in published.draining.items()
        if DrainTarget(name) not in removed
    }
    draining = {name: addresses for name, addresses in draining.items() if addresses}
    clusters = {n: c for n, c in published.clusters.items() if DrainTarget(n) not in removed}
    clusters.update({c.name: c for c in published.table.clusters if c.name not in draining})
    return Published(published.table, clusters, draining)


def _still_draining(
    draining: Mapping[str, tuple[InstanceAddress, ...]], clusters: Mapping[str, Cluster]
) -> dict[str, tuple[InstanceAddress, ...]]:
    """An address that a table names again no longer drains."""
    remaining = {
        name: tuple(a for a in addresses if name not in clusters or a not in clusters[name].addresses)
        for name, addresses in draining.items()
    }
    return {name: addresses for name, addresses in remaining.items() if addresses}
