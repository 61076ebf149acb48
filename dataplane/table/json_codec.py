"""Routing tables as JSON values, in both directions.

Decides the names of fields. It carries secrets: a file that holds a table has mode 0600. Must not
know who sends it, nor its text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from amphitrite.dataplane.table.routing_table import (
    MAX_UNSIZED_BODY_BYTES,
    Address,
    Cluster,
    Comparison,
    HealthCheck,
    InstanceAddress,
    Route,
    RoutingTable,
    Secret,
    SocketAddress,
    Target,
    TokenIssuer,
)


def to_json(table: RoutingTable) -> dict[str, Any]:
    """The table as JSON values, with its secrets in plain text."""
    return {
        "version": table.version,
        **limits_to_json(table),
        "routes": [route_to_json(r) for r in table.routes],
        "issuers": issuers_to_json(table.issuers),
        "clusters": [cluster_to_json(c) for c in table.clusters],
    }


def limits_to_json(table: RoutingTable) -> dict[str, int]:
    """The limits. What every release has as its default is left out, so that an older agent
    calculates the same digest."""
    unsized = {"max_unsized_body_bytes": table.max_unsized_body_bytes}
    return {
        "max_body_bytes": table.max_body_bytes,
        **(unsized if table.max_unsized_body_bytes != MAX_UNSIZED_BODY_BYTES else {}),
    }


def limits_from_json(value: Mapping[str, Any]) -> dict[str, int]:
    """The inverse of :func:`limits_to_json`, as arguments of ``RoutingTable``."""
    return {
        "max_body_bytes": int(value["max_body_bytes"]),
        "max_unsized_body_bytes": int(value.get("max_unsized_body_bytes", MAX_UNSIZED_BODY_BYTES)),
    }


def route_to_json(r: Route) -> dict[str, Any]:
    return {
        "name": r.name,
        "credentials": [c.reveal() for c in r.credentials],
        "targets": [
            {
                "name": t.name,
                "cluster": t.cluster,
                "timeout_s": t.timeout_s,
                "score_path": t.score_path,
                "score_reason": t.score_reason,
                "sequences": t.sequences,
                "retry_lost": t.retry_lost,
                "container": t.container,
                "per_instance": t.per_instance,
                # An older agent knows no such fields.
                **({"number_ids": True} if t.number_ids else {}),
                **({"sample_every_s": t.sample_every_s} if t.sample_every_s else {}),
                **({"queue_wait_s": t.queue_wait_s} if t.queue_wait_s else {}),
                **({"hold": t.hold} if t.hold != "never" else {}),
                **({"paused": True} if t.paused else {}),
            }
            for t in r.targets
        ],
        "split": [list(share) for share in r.split],
        "mirrors": [list(share) for share in r.mirrors],
        "auth": r.auth,
        "cors": list(r.cors),
        # Only routes with tokens have it, and agents of earlier releases do not know it.
        **({"binding": r.binding} if r.binding else {}),
        # Agents of earlier releases know no such field and compare nothing.
        **({} if r.comparison is None else {"comparison": asdict(r.comparison)}),
    }


def cluster_to_json(c: Cluster) -> dict[str, Any]:
    return {
        "name": c.name,
        "addresses": [address_to_json(a) for a in c.addresses],
        "max_requests": c.max_requests,
        "drain_timeout_s": c.drain_timeout_s,
        "health_check": {
            "path": c.health_check.path,
            "interval_s": c.health_check.interval_s,
            "timeout_s": c.health_check.timeout_s,
            "healthy_threshold": c.health_check.healthy_threshold,
            "unhealthy_threshold": c.health_check.unhealthy_threshold,
        },
        "sequences": c.sequences,
        **({"queue": True} if c.queue else {}),
    }


def address_to_json(a: InstanceAddress) -> dict[str, Any]:
    if isinstance(a, SocketAddress):
        return {"path": a.path, **({"grpc_path": a.grpc_path} if a.grpc_path else {})}
    return {"host": a.host, "port": a.port, **({"grpc_port": a.grpc_port} if a.grpc_port else {})}


def issuers_to_json(issuers: Iterable[TokenIssuer]) -> list[dict[str, Any]]:
    return [{**asdict(i), "audiences": list(i.audiences)} for i in issuers]


def from_json(value: dict[str, Any]) -> RoutingTable:
    """The inverse of :func:`to_json`. Raises KeyError, TypeError or ValueError for anything
    else."""
    return RoutingTable(
        version=int(value["version"]),
        **limits_from_json(value),
        routes=tuple(route_from_json(r) for r in value["routes"]),
        issuers=issuers_from_json(value["issuers"]),
        clusters=tuple(cluster_from_json(c) for c in value["clusters"]),
    )


def route_from_json(r: dict[str, Any]) -> Route:
    return Route(
        name=r["name"],
        credentials=tuple(Secret(c) for c in r["credentials"]),
        targets=tuple(Target(**t) for t in r["targets"]),
        split=tuple((name, percent) for name, percent in r["split"]),
        mirrors=tuple((name, percent) for name, percent in r["mirrors"]),
        auth=r["auth"],
        cors=tuple(r["cors"]),
        binding=r.get("binding", ""),
        comparison=Comparison(**r["comparison"]) if "comparison" in r else None,
    )


def cluster_from_json(c: dict[str, Any]) -> Cluster:
    return Cluster(
        name=c["name"],
        addresses=tuple(address_from_json(a) for a in c["addresses"]),
        max_requests=c["max_requests"],
        drain_timeout_s=c["drain_timeout_s"],
        health_check=HealthCheck(**c["health_check"]),
        sequences=c["sequences"],
        queue=c.get("queue", False),
    )


def address_from_json(a: dict[str, Any]) -> InstanceAddress:
    return SocketAddress(**a) if "path" in a else Address(**a)


def issuers_from_json(issuers: Iterable[dict[str, Any]]) -> tuple[TokenIssuer, ...]:
    return tuple(TokenIssuer(**{**i, "audiences": tuple(i["audiences"])}) for i in issuers)
