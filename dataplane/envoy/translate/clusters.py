"""Clusters and their addresses.

Decides how Envoy balances, limits and health-checks requests to instances. Instances that serve
gRPC are a second cluster, of HTTP/2 on their other port or UNIX socket. Must not know routes.
Source: Envoy's API page "Cluster configuration".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from amphitrite.dataplane.envoy.protobuf.common_values import ADS, seconds
from amphitrite.dataplane.table.routing_table import Address, Cluster, HealthCheck, InstanceAddress, SocketAddress

#: Far above any ``max_requests``, so that the number of requests in flight is the only limit.
_UNBOUNDED = 1_000_000
#: How far Envoy's limit on requests that may have waited is above the one that the agent keeps. The
#: agent gives a place on when a client leaves, a moment before Envoy stops counting its request.
_BEHIND_QUEUE = 2
#: Seconds between health checks of an unhealthy instance.
_RECOVERY_INTERVAL_S = 1.0
#: How much less often the healthy instances of a cluster without any request yet are checked. Most
#: of two thousand deployments are such, and so is nearly every gRPC cluster. A stale state costs
#: the first request a retry at most.
_IDLE_FACTOR = 5
_BUFFER_BYTES = 1024 * 1024
_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


def grpc_name(cluster: str) -> str:
    """The name of the cluster's gRPC half. No workload's name has a slash."""
    return f"{cluster}/grpc"


def envoy_addresses(cluster: str, address: InstanceAddress) -> Iterator[tuple[str, InstanceAddress]]:
    """The clusters and addresses by which Envoy knows one instance."""
    yield cluster, _by_http(address)
    if (by_grpc := _by_grpc(address)) is not None:
        yield grpc_name(cluster), by_grpc


def cluster(source: Cluster) -> dict[str, Any]:
    """A ``Cluster`` message. Its addresses come separately (:func:`endpoints`), so that they can
    change in place.

    Panic routing is off: an unhealthy instance gets no request, even when all are unhealthy. There
    is no outlier detection. That counts a model's timeouts against its instance, and would turn a
    slow model's 408 into 503.
    """
    return {
        "name": source.name,
        "type": "EDS",
        "eds_cluster_config": {"eds_config": ADS},
        "connect_timeout": "1s",
        # A hash only where there is something to hash: without it requests spread better.
        "lb_policy": "RING_HASH" if source.sequences else "LEAST_REQUEST",
        # By default a health change reaches the worker threads up to a second after the main
        # thread, which the admin interface asks.
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}, "update_merge_window": "0s"},
        "per_connection_buffer_limit_bytes": _BUFFER_BYTES,
        "circuit_breakers": {
            "thresholds": [
                _threshold("DEFAULT", source.max_requests),
                *([_threshold("HIGH", source.max_requests + _BEHIND_QUEUE)] if source.queue else []),
            ]
        },
        "typed_extension_protocol_options": {
            _HTTP_OPTIONS: {
                "@type": f"type.googleapis.com/{_HTTP_OPTIONS}",
                "common_http_protocol_options": {"idle_timeout": "50s"},
                "explicit_http_config": {"http_protocol_options": {}},
            }
        },
        "health_checks": [_health_check(source.health_check)],
        "ignore_health_on_host_removal": True,
    }


def _threshold(priority: str, max_requests: int) -> dict[str, Any]:
    return {
        "priority": priority,
        "max_requests": max_requests,
        "max_connections": _UNBOUNDED,
        "max_pending_requests": _UNBOUNDED,
        "max_retries": _UNBOUNDED,
    }


def grpc_cluster(source: Cluster) -> dict[str, Any]:
    """The ``Cluster`` message of the same instances, reached by gRPC. It has a limit on requests of
    its own, as large as the other's: Envoy counts by cluster."""
    message = {**cluster(source), "name": grpc_name(source.name)}
    options = message["typed_extension_protocol_options"][_HTTP_OPTIONS]
    windows = {"initial_stream_window_size": _BUFFER_BYTES, "initial_connection_window_size": 4 * _BUFFER_BYTES}
    message["typed_extension_protocol_options"] = {
        _HTTP_OPTIONS: {**options, "explicit_http_config": {"http2_protocol_options": windows}}
    }
    return message


def endpoints(
    name: str, addresses: Iterable[InstanceAddress], draining: Iterable[InstanceAddress] = ()
) -> dict[str, Any]:
    """A ``ClusterLoadAssignment``. A draining address finishes its requests and gets no new
    ones."""
    hosts: list[dict[str, Any]] = [{"endpoint": _endpoint(a)} for a in addresses]
    hosts += [{"endpoint": _endpoint(a), "health_status": "DRAINING"} for a in draining]
    return {"cluster_name": name, "endpoints": [{"lb_endpoints": hosts}] if hosts else []}


def grpc_endpoints(
    name: str, addresses: Iterable[InstanceAddress], draining: Iterable[InstanceAddress] = ()
) -> dict[str, Any]:
    """As :func:`endpoints`, for :func:`grpc_cluster`: the instances that listen for gRPC. Their
    health is checked where they listen for HTTP."""
    hosts: list[dict[str, Any]] = [{"endpoint": _grpc_endpoint(a)} for a in addresses if a.by_grpc]
    hosts += [{"endpoint": _grpc_endpoint(a), "health_status": "DRAINING"} for a in draining if a.by_grpc]
    return {"cluster_name": grpc_name(name), "endpoints": [{"lb_endpoints": hosts}] if hosts else []}


def _by_http(address: InstanceAddress) -> InstanceAddress:
    return SocketAddress(address.path) if isinstance(address, SocketAddress) else Address(address.host, address.port)


def _by_grpc(address: InstanceAddress) -> InstanceAddress | None:
    if isinstance(address, SocketAddress):
        return None if address.grpc_path is None else SocketAddress(address.grpc_path)
    return None if address.grpc_port is None else Address(address.host, address.grpc_port)


def _endpoint(address: InstanceAddress) -> dict[str, Any]:
    return {"address": _address(address)}


def _grpc_endpoint(address: InstanceAddress) -> dict[str, Any]:
    health: dict[str, Any] = {"address": _address(address)}
    if isinstance(address, Address):
        health = {"port_value": address.port}  # At the same host.
    return {"address": _address(_by_grpc(address) or address), "health_check_config": health}


def _address(address: InstanceAddress) -> dict[str, Any]:
    """An ``Address`` message: where the instance listens for HTTP."""
    if isinstance(address, SocketAddress):
        return {"pipe": {"path": address.path}}
    return {"socket_address": {"address": address.host, "port_value": address.port}}


def _health_check(check: HealthCheck) -> dict[str, Any]:
    return {
        "timeout": seconds(check.timeout_s),
        "interval": seconds(check.interval_s),
        # Without this a cluster that has had no request yet is checked only once a minute.
        "no_traffic_interval": seconds(check.interval_s),
        "no_traffic_healthy_interval": seconds(check.interval_s * _IDLE_FACTOR),
        "unhealthy_interval": seconds(min(check.interval_s, _RECOVERY_INTERVAL_S)),
        "healthy_threshold": check.healthy_threshold,
        "unhealthy_threshold": check.unhealthy_threshold,
        "http_health_check": {"path": check.path, "host": "amphitrite"},
    }
