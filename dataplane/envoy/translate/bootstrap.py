"""What Envoy is started with: its listener, its admin socket, and where to get everything else.

Decides what cannot change while Envoy runs. Must not know routes, clusters or credentials: the file
holds no secret. Source: Envoy's API page "Bootstrap (config.bootstrap.v3)".
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amphitrite.dataplane.envoy.answers import sample_filter
from amphitrite.dataplane.envoy.filters.request_stats import stats_config
from amphitrite.dataplane.envoy.protobuf.common_values import ADS_AT_START, CALLOUTS, seconds
from amphitrite.dataplane.envoy.translate import held_requests
from amphitrite.dataplane.envoy.translate.listener import listener
from amphitrite.dataplane.table.routing_table import Address

_AGENT = "agent"
#: Requests that are known to the agent, waiting or in flight. One above them goes on without a
#: callout.
_CALLOUTS_MAX = 4096
#: No other limit is reached before that one.
_UNBOUNDED = 1_000_000
#: Streams with less than a megabyte of buffers are not ended for their memory.
_TRACKED_FROM = 20
_HEAP = "envoy.resource_monitors.fixed_heap"
_MONITORS = "type.googleapis.com/envoy.extensions.resource_monitors"


@dataclass(frozen=True, slots=True)
class BootstrapSettings:
    """What the bootstrap says about one Envoy.

    - ``id``: the node's id.
    - ``agent_socket``, ``callout_socket``, ``answers_socket``, ``admin_socket``: UNIX sockets in a
      directory that only their owner may enter.
    - ``access_log``: None: standard output.
    - ``heap_bytes``: memory that Envoy must not exceed; None: no limit.
    - ``connections_max``: how many clients may be connected, whatever they say, or do not say.
    - ``metrics_every_s``: how old its latency histograms may be, in seconds.
    - ``scoring_domain``: see ``host_names``; None: endpoints have addresses by path alone.
    """

    id: str
    listen: Address
    agent_socket: Path
    callout_socket: Path
    answers_socket: Path
    admin_socket: Path
    access_log: Path | None
    heap_bytes: int | None = None
    connections_max: int = 50_000
    metrics_every_s: float = 5.0
    scoring_domain: str | None = None


def bootstrap(settings: BootstrapSettings) -> dict[str, Any]:
    """The ``Bootstrap`` message."""
    return {
        "node": {"id": settings.id, "cluster": "amphitrite"},
        "admin": {"address": {"pipe": {"path": str(settings.admin_socket), "mode": 0o600}}},
        "dynamic_resources": {
            "ads_config": {
                "api_type": "DELTA_GRPC",
                "transport_api_version": "V3",
                "grpc_services": [
                    {
                        "envoy_grpc": {
                            "cluster_name": _AGENT,
                            # Envoy connects to a restarted agent again within about a second.
                            "retry_policy": {"retry_back_off": {"base_interval": "0.1s", "max_interval": "0.5s"}},
                        }
                    }
                ],
            },
            "cds_config": ADS_AT_START,
        },
        "static_resources": {
            "listeners": [listener(settings.listen, settings.access_log, settings.scoring_domain)],
            "clusters": [
                _agent_cluster(settings.agent_socket),
                _callout_cluster(CALLOUTS, settings.callout_socket),
                _callout_cluster(held_requests.HOLD_CLUSTER, settings.callout_socket),
                _answers_cluster(settings.answers_socket),
                {"name": held_requests.EMPTY_CLUSTER, "type": "STATIC", "connect_timeout": "1s"},
            ],
        },
        "layered_runtime": {
            "layers": [
                {
                    "name": "static",
                    "static_layer": {
                        "re2.max_program_size.error_level": 1000,
                        # The many requests of one connection wait for those of the others.
                        "http.max_requests_per_io_cycle": 8,
                        **sample_filter.RUNTIME,
                    },
                },
            ]
        },
        "overload_manager": _overload_manager(settings.connections_max, settings.heap_bytes),
        "stats_config": stats_config(),
        "stats_flush_interval": seconds(settings.metrics_every_s),
        # The memory that a large table needed while it was taken in goes back to the machine bit by
        # bit.
        "memory_allocator_manager": {"bytes_to_release": 32 * 1024 * 1024, "memory_release_interval": "1s"},
    }


def _overload_manager(connections_max: int, heap_bytes: int | None) -> dict[str, Any]:
    """A limit on connections. With ``heap_bytes``, Envoy also reduces its service as it approaches
    that limit."""
    connections = {
        "name": "envoy.resource_monitors.global_downstream_max_connections",
        "typed_config": {
            "@type": f"{_MONITORS}.downstream_connections.v3.DownstreamConnectionsConfig",
            "max_active_downstream_connections": connections_max,
        },
    }
    if heap_bytes is None:
        return {"resource_monitors": [connections]}
    heap = {
        "name": _HEAP,
        "typed_config": {"@type": f"{_MONITORS}.fixed_heap.v3.FixedHeapConfig", "max_heap_size_bytes": heap_bytes},
    }
    return {
        "refresh_interval": "0.1s",
        "resource_monitors": [connections, heap],
        # Streams are told apart by the size of their buffers: the largest are ended first.
        "buffer_factory_config": {"minimum_account_to_track_power_of_two": _TRACKED_FROM},
        "actions": [
            _scaled("envoy.overload_actions.reset_high_memory_stream", 0.7, 0.85),
            _action("envoy.overload_actions.shrink_heap", 0.85),
            _action("envoy.overload_actions.disable_http_keepalive", 0.92),
            _action("envoy.overload_actions.stop_accepting_requests", 0.95),
        ],
    }


def _scaled(name: str, first: float, last: float) -> dict[str, Any]:
    """An action that is taken ever more between these shares."""
    return {
        "name": name,
        "triggers": [{"name": _HEAP, "scaled": {"scaling_threshold": first, "saturation_threshold": last}}],
    }


def _action(name: str, share: float) -> dict[str, Any]:
    return {"name": name, "triggers": [{"name": _HEAP, "threshold": {"value": share}}]}


def _agent_cluster(socket: Path) -> dict[str, Any]:
    return _grpc_cluster(_AGENT, socket)


def _callout_cluster(name: str, socket: Path) -> dict[str, Any]:
    limits = {
        "max_requests": _CALLOUTS_MAX,
        "max_connections": _UNBOUNDED,
        "max_pending_requests": _UNBOUNDED,
        # All that were held ask again at once when an agent has ended.
        "max_retries": _UNBOUNDED,
    }
    return {
        **_grpc_cluster(name, socket),
        "circuit_breakers": {"thresholds": [{"priority": "DEFAULT", **limits}]},
    }


def _answers_cluster(socket: Path) -> dict[str, Any]:
    limits = {"max_requests": sample_filter.AT_ONCE_MAX}
    return {
        **_grpc_cluster(sample_filter.CLUSTER, socket),
        "circuit_breakers": {"thresholds": [{"priority": "DEFAULT", **limits}]},
    }


def _grpc_cluster(name: str, socket: Path) -> dict[str, Any]:
    host = {"endpoint": {"address": {"pipe": {"path": str(socket)}}}}
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "1s",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [host]}]},
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": {"http2_protocol_options": {}},
            }
        },
    }
