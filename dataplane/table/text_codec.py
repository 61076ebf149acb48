"""Routing tables as text: whole, as what has changed since another, and the digest that names the content.

Decides the form of a change and what of a text may be kept from the table before. A table of a thousand endpoints is a
megabyte, a change concerns one of them: the text of each part is remembered by its name. Pure but for that memory. Must
not know who sends it or why.

A change of the table of version V has its routes and clusters that are new or other, and the names of those that are
no more: ``{"since": V, "version", "max_body_bytes", "issuers", "routes", "clusters", "gone": {"routes", "clusters"}}``.
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
    route_from_json,
    route_to_json,
)
from amphitrite.dataplane.table.routing_table import Cluster, Route, RoutingTable

Part = TypeVar("Part", Route, Cluster)


@dataclass(frozen=True, slots=True)
class _Known(Generic[Part]):
    """``canonical``: as it counts for the digest."""

    part: Part
    text: str
    canonical: str


class _Memory(Generic[Part]):
    """Routes or clusters of the last table."""

    def __init__(self, to_json: Callable[[Part], dict[str, Any]]) -> None:
        self._to_json: Callable[[Part], dict[str, Any]] = to_json
        self._known: Mapping[str, _Known[Part]] = {}

    def of(self, parts: Iterable[Part]) -> Iterable[_Known[Part]]:
        before = self._known
        now: dict[str, _Known[Part]] = {}
        for part in parts:
            known = before.get(part.name)
            if known is None or (known.part is not part and known.part != part):
                value = self._to_json(part)
                known = _Known(part, json.dumps(value), _canonical(value))
            now[part.name] = known
        self._known = now
        return now.values()


class TableText:
    """Thread safe: threads that meet make a text twice at worst."""

    def __init__(self) -> None:
        self._routes: _Memory[Route] = _Memory(route_to_json)
        self._clusters: _Memory[Cluster] = _Memory(cluster_to_json)
        self._digest: tuple[RoutingTable, str] | None = None

    def whole(self, table: RoutingTable) -> str:
        """The JSON text of ``table_json.to_json``."""
        routes = ", ".join(known.text for known in self._routes.of(table.routes))
        clusters = ", ".join(known.text for known in self._clusters.of(table.clusters))
        return f'{{{_head(table)}, "routes": [{routes}], "clusters": [{clusters}]}}'

    def digest(self, table: RoutingTable) -> str:
        """Names the content of ``table``, whatever its version: tells two tables of one version apart."""
        last = self._digest
        if last is not None and last[0] is table:
            return last[1]
        routes = ", ".join(known.canonical for known in self._routes.of(table.routes))
        clusters = ", ".join(known.canonical for known in self._clusters.of(table.clusters))
        issuers = _canonical(issuers_to_json(table.issuers))
        text = (
            f'{{"clusters": [{clusters}], "issuers": {issuers}, "max_body_bytes": {_canonical(table.max_body_bytes)}, '
            f'"routes": [{routes}], "version": 0.0}}'
        )
        made = hashlib.sha256(text.encode()).hexdigest()[:32]
        self._digest = table, made
        return made


def change(since: RoutingTable, table: RoutingTable) -> str:
    """The JSON text of what makes ``table`` of ``since``."""
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


def changed(since: RoutingTable, value: Mapping[str, Any]) -> RoutingTable:
    """The table that a change makes of ``since``. Raises KeyError, TypeError or ValueError for anything else, such as
    a change of another version."""
    if value["since"] != since.version:
        raise ValueError(f"a change of version {value['since']} met version {since.version}")
    gone = value["gone"]
    return RoutingTable(
        version=int(value["version"]),
        max_body_bytes=int(value["max_body_bytes"]),
        routes=_merged(since.routes, map(route_from_json, value["routes"]), gone["routes"]),
        issuers=issuers_from_json(value["issuers"]),
        clusters=_merged(since.clusters, map(cluster_from_json, value["clusters"]), gone["clusters"]),
    )


def _head(table: RoutingTable) -> str:
    issuers = json.dumps(issuers_to_json(table.issuers))
    return f'"version": {table.version}, "max_body_bytes": {table.max_body_bytes}, "issuers": {issuers}'


def _canonical(value: object) -> str:
    # A database may give 5 where it was given 5.0.
    return json.dumps(json.loads(json.dumps(value), parse_int=float), sort_keys=True)


def _difference(since: Iterable[Part], now: Iterable[Part]) -> tuple[list[Part], list[str]]:
    before = {part.name: part for part in since}
    other = []
    for part in now:
        known = before.pop(part.name, None)
        if known is not part and known != part:
            other.append(part)
    return other, list(before)


def _merged(since: Iterable[Part], new: Iterable[Part], gone: Iterable[str]) -> tuple[Part, ...]:
    parts = {part.name: part for part in since} | {part.name: part for part in new}
    for name in gone:
        del parts[name]
    return tuple(parts[name] for name in sorted(parts))
