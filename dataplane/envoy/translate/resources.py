"""All Envoy resources of one routing table, by type and name.

Decides which resource types exist and what identifies a resource's content. Must not know the
stream that carries them. Source: Envoy's page "xDS REST and gRPC protocol".
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from amphitrite.dataplane.envoy.filters.jwt import FILTER, extension
from amphitrite.dataplane.envoy.protobuf.messages import pack
from amphitrite.dataplane.envoy.translate import host_names
from amphitrite.dataplane.envoy.translate.clusters import cluster, endpoints, grpc_cluster, grpc_endpoints, grpc_name
from amphitrite.dataplane.envoy.translate.routes import BodyLimits, route_configuration, scope
from amphitrite.dataplane.table.routing_table import Cluster, InstanceAddress, Route, RoutingTable
from amphitrite.schemas.errors import Error

_PREFIX = "type.googleapis.com/envoy"
CLUSTER = f"{_PREFIX}.config.cluster.v3.Cluster"
ENDPOINTS = f"{_PREFIX}.config.endpoint.v3.ClusterLoadAssignment"
EXTENSION = f"{_PREFIX}.config.core.v3.TypedExtensionConfig"
ROUTES = f"{_PREFIX}.config.route.v3.RouteConfiguration"
SCOPES = f"{_PREFIX}.config.route.v3.ScopedRouteConfiguration"
SECRET = f"{_PREFIX}.extensions.transport_sockets.tls.v3.Secret"

#: The order in which they must reach Envoy: a resource goes before those that name it.
TYPES = (SECRET, CLUSTER, ENDPOINTS, EXTENSION, ROUTES, SCOPES)


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource: its packed message and the hash of that, which is its version on the wire.

    ``make`` returns the message's JSON value. The value is made again for each caller. For a
    thousand endpoints the values are half a million objects, which the garbage collector would
    visit again and again.
    """

    packed: Any = field(repr=False)
    version: str
    make: Callable[[], Mapping[str, Any]] = field(repr=False, compare=False)

    @property
    def value(self) -> Mapping[str, Any]:
        return self.make()

    @classmethod
    def of(cls, type_url: str, make: Callable[[], Mapping[str, Any]]) -> Resource:
        """Raises ValueError when the value is not a message of that type."""
        packed = pack(type_url, make())
        return cls(packed, hashlib.sha256(packed.value).hexdigest()[:24], make)


#: name -> resource, of one type.
Named = Mapping[str, Resource]


class Translator:
    """Makes resources and caches them: a change of one endpoint must not cost the work of a
    thousand.

    Each method returns resources by name, and the same mapping as last time while nothing in it has
    changed. Pure except for the cache, which holds the last result of each name. Raises
    Error(RoutingRejected), and caches nothing, when a value cannot be a message.
    """

    def __init__(self, scoring_domain: str | None = None) -> None:
        """``scoring_domain``: see ``host_names``."""
        self._domain = scoring_domain
        self._memory: dict[str, dict[str, tuple[Any, Resource]]] = {}
        self._returned: dict[str, dict[str, Resource]] = {}

    def clusters(
        self, clusters: Collection[Cluster], draining: Mapping[str, tuple[InstanceAddress, ...]]
    ) -> dict[str, Resource]:
        """The clusters. ``draining``: as for :meth:`endpoints`."""
        sources: list[_Source] = [(c.name, c, cluster) for c in clusters]
        sources += ((grpc_name(c.name), c, grpc_cluster) for c in _by_grpc(clusters, draining))
        return self._all(CLUSTER, sources, _same_settings)

    def endpoints(
        self, clusters: Collection[Cluster], draining: Mapping[str, tuple[InstanceAddress, ...]]
    ) -> dict[str, Resource]:
        """Addresses by cluster. Those in ``draining`` finish their requests and get no new ones."""
        sources: list[_Source] = [
            (c.name, (c.name, c.addresses, draining.get(c.name, ())), _endpoints) for c in clusters
        ]
        for c in _by_grpc(clusters, draining):
            sources.append((grpc_name(c.name), (c.name, c.addresses, draining.get(c.name, ())), _grpc_endpoints))
        return self._all(ENDPOINTS, sources)

    def extensions(self, table: RoutingTable) -> dict[str, Resource]:
        return self._all(EXTENSION, [(FILTER, table.issuers, extension)])

    def routes(self, table: RoutingTable) -> dict[str, Resource]:
        bodies = BodyLimits(table.max_body_bytes, table.max_unsized_body_bytes)
        limits = {c.name: (c.max_requests, c.grpc) for c in table.clusters}
        sources: list[_Source] = []
        for r in table.routes:
            # Only the route's own clusters: what is cached must not keep a whole table alive.
            own = tuple((t.cluster, *limits[t.cluster]) for t in r.targets if t.cluster in limits)
            sources.append((r.name, (r, own, bodies), _route))
            if self._domain is not None:
                source = r, own, bodies, self._domain
                sources.append((host_names.host(r.name, self._domain), source, _route_at_host))
        return self._all(ROUTES, sources)

    def scopes(self, table: RoutingTable) -> dict[str, Resource]:
        names = [r.name for r in table.routes]
        if self._domain is not None:
            names += [host_names.host(r.name, self._domain) for r in table.routes]
        return self._all(SCOPES, [(name, name, scope) for name in names])

    def _all(
        self, type_url: str, sources: Iterable[_Source], same: Callable[[Any, Any], bool] = operator.eq
    ) -> dict[str, Resource]:
        before = self._memory.get(type_url, {})
        now: dict[str, tuple[Any, Resource]] = {}
        changed = type_url not in self._returned
        for name, source, make in sources:
            cached = before.get(name)
            if cached is None or not (cached[0] is source or same(cached[0], source)):
                cached, changed = (source, _resource(type_url, name, partial(make, source))), True
            now[name] = cached
        self._memory[type_url] = now
        if changed or len(now) != len(before):
            self._returned[type_url] = {name: resource for name, (_, resource) in now.items()}
        return self._returned[type_url]


#: A resource's name, its source, and the function that makes its JSON value of that.
_Source = tuple[str, Any, Callable[[Any], Mapping[str, Any]]]


def _resource(type_url: str, name: str, make: Callable[[], Mapping[str, Any]]) -> Resource:
    try:
        return Resource.of(type_url, make)
    except ValueError as exc:
        raise Error("RoutingRejected", f"{name}: {exc}", target=name) from exc


def _same_settings(first: Cluster, second: Cluster) -> bool:
    """Whether both make the same ``Cluster`` message: that holds all but the addresses."""
    return replace(first, addresses=()) == replace(second, addresses=())


def _endpoints(source: tuple[str, tuple[InstanceAddress, ...], tuple[InstanceAddress, ...]]) -> Mapping[str, Any]:
    return endpoints(*source)


def _grpc_endpoints(source: tuple[str, tuple[InstanceAddress, ...], tuple[InstanceAddress, ...]]) -> Mapping[str, Any]:
    return grpc_endpoints(*source)


def _route(source: tuple[Route, tuple[tuple[str, int, bool], ...], BodyLimits]) -> Mapping[str, Any]:
    route, clusters, bodies = source
    bounds = {name: bound for name, bound, _ in clusters}
    return route_configuration(route, bounds, bodies, [name for name, _, by_grpc in clusters if by_grpc])


def _route_at_host(source: tuple[Route, tuple[tuple[str, int, bool], ...], BodyLimits, str]) -> Mapping[str, Any]:
    return host_names.route_configuration(_route(source[:3]), source[0].name, source[3])


def _by_grpc(clusters: Iterable[Cluster], draining: Mapping[str, tuple[InstanceAddress, ...]]) -> Iterator[Cluster]:
    """The clusters with a gRPC half. It stays as long as one of its instances drains."""
    for item in clusters:
        if item.grpc or any(a.by_grpc for a in draining.get(item.name, ())):
            yield item
