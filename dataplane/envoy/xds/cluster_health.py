"""The state of instances in Envoy: which are healthy, and how many requests are in flight on each.

Decides how the two hosts of an instance, for HTTP and for gRPC, count as one. Must not know why
somebody asks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from amphitrite.dataplane.envoy.process.admin_client import Host
from amphitrite.dataplane.envoy.translate.clusters import envoy_addresses, grpc_name
from amphitrite.dataplane.envoy.xds.update_stages import DrainTarget
from amphitrite.dataplane.table.routing_table import InstanceAddress
from amphitrite.schemas.errors import Error


class HostStatus(Protocol):
    """The part of ``AdminClient`` that is needed here."""

    def hosts(self, clusters: Collection[str]) -> dict[str, list[Host]]: ...


def envoy_hosts(instances: Collection[tuple[str, InstanceAddress]]) -> set[tuple[str, InstanceAddress]]:
    """The hosts of these instances in Envoy, as (cluster, address): for HTTP, and for gRPC where an
    instance serves it."""
    return {host for cluster, address in instances for host in envoy_addresses(cluster, address)}


def all_healthy(host_status: HostStatus, expected: Collection[tuple[str, InstanceAddress]]) -> bool:
    """Whether each of these :func:`envoy_hosts` is healthy. An Envoy that does not answer has no
    healthy host."""
    try:
        hosts = host_status.hosts({cluster for cluster, _ in expected})
    except Error:
        return not expected
    return {(name, h.address) for name, some in hosts.items() for h in some if h.healthy}.issuperset(expected)


def in_flight(
    host_status: HostStatus, draining: Collection[DrainTarget], waiting: Mapping[str, int]
) -> dict[DrainTarget, int]:
    """The requests in flight by HTTP and gRPC together. Targets that Envoy does not have are left
    out, and all of them when it does not answer. ``waiting``: the requests that wait for a place,
    by cluster: Envoy sends them to a whole cluster later."""
    names = {target.cluster for target in draining if target.cluster}
    try:
        hosts = host_status.hosts(names | {grpc_name(name) for name in names})
    except Error:
        return {}
    return {
        target: _requests_on(target, hosts) + (waiting.get(target.cluster, 0) if target.address is None else 0)
        for target in draining
        if target.cluster in hosts
    }


def _requests_on(target: DrainTarget, hosts: Mapping[str, Collection[Host]]) -> int:
    if target.address is None:
        both = (target.cluster, grpc_name(target.cluster))
        return sum(host.active for name in both for host in hosts.get(name, ()))
    own_hosts = envoy_addresses(target.cluster, target.address)
    return sum(host.active for name, where in own_hosts for host in hosts.get(name, ()) if host.address == where)
