"""Routing tables as text: whole, or as the change since another table.

Decides the form of a change, and which text of the last table is used again. A table of a thousand
endpoints is a megabyte, and a change concerns one of them, so the text of each part is cached by
its name. Pure except for that cache. Must not know who sends the text or why.

A change since version V has the routes and clusters that are new or different, and the names of
those that were removed: ``{"since": V, "version", "max_body_bytes", "issuers", "routes",
"clusters", "gone": {"routes", "clusters"}}``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from amphitrite.dataplane.table.json_codec import (
    cluster_from_json,
    cluster_to_json,
    issuers_from_json,
    issuers_to_json,
    limits_from_json,
    limits_to_json,
    route_from_json,
    route_to_json,
)
from amphitrite.dataplane.table.routing_table import Cluster, Route, RoutingTable

Part = TypeVar("Part", Route, Cluster)


@dataclass(frozen=True, slots=True)
class _CachedPart(Generic[Part]):
    """``text``: as it travels. ``canonical``: as it counts for the digest."""

    part: Part
    text: str
    canonical: str


class _PartCache(Generic[Part]):
    """The text of the last table's routes or clusters."""

    def __init__(self, to_json: Callable[[Part], dict[str, Any]]) -> None:
        self._to_json: Callable[[Part], dict[str, Any]] = to_json
        self._cached: Mapping[str, _CachedPart[Part]] = {}

    def of(self, parts: Iterable[Part]) -> Iterable[_CachedPart[Part]]:
        before = self._cached
        now: dict[str, _CachedPart[Part]] = {}
        for part in parts:
            cached = before.get(part.name)
            if cached is None or (cached.part is not part and cached.part != part):
                value = self._to_json(part)
                cached = _CachedPart(part, json.dumps(value), _canonical(value))
            now[part.name] = cached
        self._cached = now
        return now.values()


class TableText:
    """Makes and caches the text of tables. Thread-safe; at worst two threads make the same text
    twice."""

    def __init__(self) -> None:
        self._routes: _PartCache[Route] = _PartCache(route_to_json)
        self._clusters: _PartCache[Cluster] = _PartCache(cluster_to_json)
        self._digest: tuple[RoutingTable, str] | None = None

    def whole(self, table: RoutingTable) -> str:
        """The JSON text of ``json_codec.to_json``."""
        routes = ", ".join(cached.text for cached in self._routes.of(table.routes))
        clusters = ", ".join(cached.text for cached in self._clusters.of(table.clusters))
        return f'{{{_head(table)}, "routes": [{routes}], "clusters": [{clusters}]}}'

    def digest(self, table: RoutingTable) -> str:
        """32 hexadecimal digits that identify the content of ``table``, whatever its version. They
        distinguish two tables of one version."""
        last = self._digest
        if last is not None and last[0] is table:
            return last[1]
        routes = ", ".join(cached.canonical for cached in self._routes.of(table.routes))
        clusters = ", ".join(cached.canonical for cached in self._clusters.of(table.clusters))
        issuers = _canonical(issuers_to_json(table.issuers))
        limits = _canonical(limits_to_json(table))[1:-1]
        text = f'{{"clusters": [{clusters}], "issuers": {issuers}, {limits}, "routes": [{routes}], "version": 0.0}}'
        digest = hashlib.sha256(text.encode()).hexdigest()[:32]
        self._digest = table, digest
        return digest


def encode_change(since: RoutingTable, table: RoutingTable) -> str:
    """The JSON text of the change from ``since`` to ``table``."""
    routes, gone_routes = _difference(since.routes, table.routes)
    clusters, gone_clusters = _difference(since.clusters, table.clusters)
    text = json.dumps(
        {
            "routes": [route_to_json(r) for r in routes],
            "clusters": [cluster_to_json(c) for c in clusters],
            "gone": {"routes": gone_routes, "clusters": gone_clusters},
        }
    )
    return f'{{"since": {since.version}, {_head(table)}, {text[1:]}'


def apply_change(since: RoutingTable, value: Mapping[str, Any]) -> RoutingTable:
    """The table that results from a change of ``since``. Raises KeyError, TypeError or ValueError
    for anything else, such as a change since another version."""
    if value["since"] != since.version:
        raise ValueError(f"a change of version {value['since']} met version {since.version}")
    removed = value["gone"]
    return RoutingTable(
        version=int(value["version"]),
        **limits_from_json(value),
        routes=_merged(since.routes, map(route_from_json, value["routes"]), removed["routes"]),
        issuers=issuers_from_json(value["issuers"]),
        clusters=_merged(since.clusters, map(cluster_from_json, value["clusters"]), removed["clusters"]),
    )


def _head(table: RoutingTable) -> str:
    issuers = json.dumps(issuers_to_json(table.issuers))
    limits = json.dumps(limits_to_json(table))[1:-1]
    return f'"version": {table.version}, {limits}, "issuers": {issuers}'


def _canonical(value: object) -> str:
    # A database may return 5 for 5.0.
    return json.dumps(json.loads(json.dumps(value), parse_int=float), sort_keys=True)


def _difference(since: Iterable[Part], now: Iterable[Part]) -> tuple[list[Part], list[str]]:
    before = {part.name: part for part in since}
    different = []
    for part in now:
        cached = before.pop(part.name, None)
        if cached is not part and cached != part:
            different.append(part)
    return different, list(before)


def _merged(since: Iterable[Part], new: Iterable[Part], removed: Iterable[str]) -> tuple[Part, ...]:
    parts = {part.name: part for part in since} | {part.name: part for part in new}
    for name in removed:
        del parts[name]
    return tuple(parts[name] for name in sorted(parts))
