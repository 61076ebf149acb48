"""All resources that one routing table asks for, by type and name.

Decides which resource types exist and what identifies a resource's content. Must not know the stream they travel on.
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
from amphitrite.dataplane.envoy.translate.routes import route_configuration, scope
from amphitrite.dataplane.table.routing_table import Address, Cluster, Route, RoutingTable
from amphitrite.schemas.errors import Error

_PREFIX = "type.googleapis.com/envoy"
CLUSTER = f"{_PREFIX}.config.cluster.v3.Cluster"
ENDPOINTS = f"{_PREFIX}.config.endpoint.v3.ClusterLoadAssignment"
EXTENSION = f"{_PREFIX}.config.core.v3.TypedExtensionConfig"
ROUTES = f"{_PREFIX}.config.route.v3.RouteConfiguration"
SCOPES = f"{_PREFIX}.config.route.v3.ScopedRouteConfiguration"
SECRET = f"{_PREFIX}.extensions.transport_sockets.tls.v3.Secret"

#: In the order in which they must reach Envoy: what is named goes before what names it.
TYPES = (SECRET, CLUSTER, ENDPOINTS, EXTENSION, ROUTES, SCOPES)


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource: its message, packed, and the hash of that, which is its version on the wire.

    ``make``: the message's JSON value. That is made again for whoever asks: of a thousand endpoints the values are half
    a million objects, which the garbage collector would visit again and again.
    """

    packed: Any = field(repr=False)
    version: str
    make: Callable[[], Mapping[str, Any]] = field(repr=False, compare=False)

    @property
    def value(self) -> Mapping[str, Any]:
        return self.make()

    @classmethod
    def of(cls, type_url: str, make: Callable[[], Mapping[str, Any]]) -> Resource:
        """Raises ValueError for what is no message of that type."""
        packed = pack(type_url, make())
        return cls(packed, hashlib.sha256(packed.value).hexdigest()[:24], make)


#: name -> resource, of one type.
Named = Mapping[str, Resource]


class Translator:
    """Makes resources, and remembers them: a change to one endpoint must not cost the work of a thousand.

    Each method gives resources by name, and the very mapping that it gave last while nothing in it has changed. Pure
    but for the memory, which holds the last result of each name. Raises Error(RoutingRejected), remembering nothing,
    for what cannot be a message.
    """

    def __init__(self, scoring_domain: str | None = None) -> None:
        """``scoring_domain``: endpoints are reached by host names below it too."""
        self._domain = scoring_domain
        self._memory: dict[str, dict[str, tuple[Any, Resource]]] = {}
        self._given: dict[str, dict[str, Resource]] = {}

    def clusters(
        self, clusters: Collection[Cluster], draining: Mapping[str, tuple[Address, ...]]
    ) -> dict[str, Resource]:
        """``draining``: as for the endpoints."""
        wanted: list[_Wanted] = [(c.name, c, cluster) for c in clusters]
        wanted += ((grpc_name(c.name), c, grpc_cluster) for c in _by_grpc(clusters, draining))
        return self._all(CLUSTER, wanted, _same_settings)

    def endpoints(
        self, clusters: Collection[Cluster], draining: Mapping[str, tuple[Address, ...]]
    ) -> dict[str, Resource]:
        """Addresses by cluster; those in ``draining`` finish what they have and get nothing new."""
        wanted: list[_Wanted] = [
            (c.name, (c.name, c.addresses, draining.get(c.name, ())), _endpoints) for c in clusters
        ]
        for c in _by_grpc(clusters, draining):
            wanted.append((grpc_name(c.name), (c.name, c.addresses, draining.get(c.name, ())), _grpc_endpoints))
        return self._all(ENDPOINTS, wanted)

    def extensions(self, table: RoutingTable) -> dict[str, Resource]:
        return self._all(EXTENSION, [(FILTER, table.issuers, extension)])

    def routes(self, table: RoutingTable) -> dict[str, Resource]:
        placed = {c.name: (c.max_requests, c.grpc) for c in table.clusters}
        wanted: list[_Wanted] = []
        for r in table.routes:
            # Of its own clusters alone: what is remembered must not hold on to a whole table.
            own = tuple((t.cluster, *placed[t.cluster]) for t in r.targets if t.cluster in placed)
            wanted.append((r.name, (r, own, table.max_body_bytes), _route))
            if self._domain is not None:
                source = r, own, table.max_body_bytes, self._domain
                wanted.append((host_names.host(r.name, self._domain), source, _route_at_host))
        return self._all(ROUTES, wanted)

    def scopes(self, table: RoutingTable) -> dict[str, Resource]:
        names = [r.name for r in table.routes]
        if self._domain is not None:
            names += [host_names.host(r.name, self._domain) for r in table.routes]
        return self._all(SCOPES, [(name, name, scope) for name in names])

    def _all(
        self, type_url: str, wanted: Iterable[_Wanted], same: Callable[[Any, Any], bool] = operator.eq
    ) -> dict[str, Resource]:
        before = self._memory.get(type_url, {})
        now: dict[str, tuple[Any, Resource]] = {}
        news = type_url not in self._given
        for name, source, make in wanted:
            known = before.get(name)
            if known is None or not (known[0] is source or same(known[0], source)):
                known, news = (source, _made(type_url, name, partial(make, source))), True
            now[name] = known
        self._memory[type_url] = now
        if news or len(now) != len(before):
            self._given[type_url] = {name: resource for name, (_, resource) in now.items()}
        return self._given[type_url]


#: The name of a resource, what it is made of, and what makes its JSON value of that.
_Wanted = tuple[str, Any, Callable[[Any], Mapping[str, Any]]]


def _made(type_url: str, name: str, make: Callable[[], Mapping[str, Any]]) -> Resource:
    try:
        return Resource.of(type_url, make)
    except ValueError as exc:
        raise Error("RoutingRejected", f"{name}: {exc}", target=name) from exc


def _same_settings(one: Cluster, other: Cluster) -> bool:
    """A ``Cluster`` message is made of all but the addresses."""
    return replace(one, addresses=()) == replace(other, addresses=())


def _endpoints(source: tuple[str, tuple[Address, ...], tuple[Address, ...]]) -> Mapping[str, Any]:
    return endpoints(*source)


def _grpc_endpoints(source: tuple[str, tuple[Address, ...], tuple[Address, ...]]) -> Mapping[str, Any]:
    return grpc_endpoints(*source)


def _route(source: tuple[Route, tuple[tuple[str, int, bool], ...], int]) -> Mapping[str, Any]:
    route, clusters, max_body_bytes = source
    bounds = {name: bound for name, bound, _ in clusters}
    return route_configuration(route, bounds, max_body_bytes, [name for name, _, by_grpc in clusters if by_grpc])


def _route_at_host(source: tuple[Route, tuple[tuple[str, int, bool], ...], int, str]) -> Mapping[str, Any]:
    return host_names.route_configuration(_route(source[:3]), source[0].name, source[3])


def _by_grpc(clusters: Iterable[Cluster], draining: Mapping[str, tuple[Address, ...]]) -> Iterator[Cluster]:
    """Those with a half for gRPC, which stays as long as one of its instances drains."""
    for one in clusters:
        if one.grpc or any(a.grpc_port is not None for a in draining.get(one.name, ())):
            yield one
