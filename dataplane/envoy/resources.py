"""All resources that one routing table asks for, by type and name.

Decides which resource types exist and what identifies a resource's content. Must not know the stream they travel on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from amphitrite.dataplane.envoy import hosts
from amphitrite.dataplane.envoy.clusters import cluster, endpoints, grpc_cluster, grpc_endpoints, grpc_name
from amphitrite.dataplane.envoy.routes import route_configuration, scope
from amphitrite.dataplane.envoy.tokens import FILTER, extension
from amphitrite.dataplane.protos import pack
from amphitrite.dataplane.routing import Address, Cluster, RoutingTable
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

    Each method gives resources by name. Pure but for the memory, which holds the last result of each name. Raises
    Error(RoutingRejected), remembering nothing, for what cannot be a message.
    """

    def __init__(self, scoring_domain: str | None = None) -> None:
        """``scoring_domain``: endpoints are reached by host names below it too."""
        self._domain = scoring_domain
        self._memory: dict[tuple[str, str], tuple[object, Resource]] = {}

    def clusters(
        self, clusters: Collection[Cluster], draining: Mapping[str, tuple[Address, ...]]
    ) -> dict[str, Resource]:
        """``draining``: as for the endpoints."""
        wanted = {c.name: (_settings(c), partial(cluster, c)) for c in clusters}
        for c in _by_grpc(clusters, draining):
            wanted[grpc_name(c.name)] = _settings(c), partial(grpc_cluster, c)
        return self._all(CLUSTER, wanted)

    def endpoints(
        self, clusters: Collection[Cluster], draining: Mapping[str, tuple[Address, ...]]
    ) -> dict[str, Resource]:
        """Addresses by cluster; those in ``draining`` finish what they have and get nothing new."""
        where = {c.name: (c.addresses, draining.get(c.name, ())) for c in clusters}
        wanted = {name: (pair, partial(endpoints, name, *pair)) for name, pair in where.items()}
        for c in _by_grpc(clusters, draining):
            wanted[grpc_name(c.name)] = where[c.name], partial(grpc_endpoints, c.name, *where[c.name])
        return self._all(ENDPOINTS, wanted)

    def extensions(self, table: RoutingTable) -> dict[str, Resource]:
        return self._all(EXTENSION, {FILTER: (table.issuers, partial(extension, table.issuers))})

    def routes(self, table: RoutingTable) -> dict[str, Resource]:
        bounds = {c.name: c.max_requests for c in table.clusters}
        by_grpc = frozenset(c.name for c in table.clusters if c.grpc)
        wanted: dict[str, tuple[object, Callable[[], Mapping[str, Any]]]] = {}
        for r in table.routes:
            # Of its own clusters alone: what is remembered must not hold on to a whole table.
            own = {t.cluster: bounds[t.cluster] for t in r.targets if t.cluster in bounds}
            source = r, table.max_body_bytes, own, by_grpc.intersection(own)
            by_path = partial(route_configuration, r, own, table.max_body_bytes, by_grpc.intersection(own))
            wanted[r.name] = source, by_path
            if self._domain is not None:
                wanted[hosts.host(r.name, self._domain)] = source, partial(_at_host, by_path, r.name, self._domain)
        return self._all(ROUTES, wanted)

    def scopes(self, table: RoutingTable) -> dict[str, Resource]:
        names = [r.name for r in table.routes]
        if self._domain is not None:
            names += [hosts.host(r.name, self._domain) for r in table.routes]
        return self._all(SCOPES, {name: (name, partial(scope, name)) for name in names})

    def _all(
        self, type_url: str, wanted: Mapping[str, tuple[object, Callable[[], Mapping[str, Any]]]]
    ) -> dict[str, Resource]:
        known = {
            name: self._memory[type_url, name][1]
            for name, (source, _) in wanted.items()
            if (type_url, name) in self._memory and self._memory[type_url, name][0] == source
        }
        made = {n: known[n] if n in known else _made(type_url, n, make) for n, (_, make) in wanted.items()}
        for key in [k for k in self._memory if k[0] == type_url]:
            del self._memory[key]
        self._memory.update({(type_url, n): (wanted[n][0], resource) for n, resource in made.items()})
        return made


def _made(type_url: str, name: str, make: Callable[[], Mapping[str, Any]]) -> Resource:
    try:
        return Resource.of(type_url, make)
    except ValueError as exc:
        raise Error("RoutingRejected", f"{name}: {exc}", target=name) from exc


def _at_host(by_path: Callable[[], Mapping[str, Any]], endpoint: str, domain: str) -> Mapping[str, Any]:
    return hosts.route_configuration(by_path(), endpoint, domain)


def _settings(cluster: Cluster) -> Cluster:
    """What its ``Cluster`` message is made of: all but the addresses."""
    return replace(cluster, addresses=())


def _by_grpc(clusters: Iterable[Cluster], draining: Mapping[str, tuple[Address, ...]]) -> Iterator[Cluster]:
    """Those with a half for gRPC, which stays as long as one of its instances drains."""
    for one in clusters:
        if one.grpc or any(a.grpc_port is not None for a in draining.get(one.name, ())):
            yield one


def translate(table: RoutingTable, scoring_domain: str | None = None) -> dict[str, dict[str, Resource]]:
    """Every resource of ``table``, by type URL and name."""
    translator = Translator(scoring_domain)
    return {
        CLUSTER: translator.clusters(table.clusters, {}),
        ENDPOINTS: translator.endpoints(table.clusters, {}),
        EXTENSION: translator.extensions(table),
        ROUTES: translator.routes(table),
        SCOPES: translator.scopes(table),
    }
