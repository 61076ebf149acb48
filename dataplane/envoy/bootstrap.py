"""What Envoy is started with: its listener, its admin socket, and where to ask for everything else.

Decides what cannot change while Envoy runs. Must not know routes, clusters or credentials: the file holds no secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amphitrite.dataplane.envoy.clusters import ADS
from amphitrite.dataplane.envoy.listener import listener
from amphitrite.dataplane.routing import Address

_AGENT = "agent"


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """``id`` names this proxy; both sockets are UNIX sockets in a directory that only their owner may enter."""

    id: str
    listen: Address
    agent_socket: Path
    admin_socket: Path
    access_log: Path


def bootstrap(settings: ProxySettings) -> dict[str, Any]:
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
                            # A restarted agent is found again within about a second.
                            "retry_policy": {"retry_back_off": {"base_interval": "0.1s", "max_interval": "0.5s"}},
                        }
                    }
                ],
            },
            "cds_config": ADS,
        },
        "static_resources": {
            "listeners": [listener(settings.listen, settings.access_log)],
            "clusters": [_agent_cluster(settings.agent_socket)],
        },
        "layered_runtime": {
            "layers": [
                {"name": "static", "static_layer": {"re2.max_program_size.error_level": 1000}},
            ]
        },
        "overload_manager": {
            "resource_monitors": [
                {
                    "name": "envoy.resource_monitors.global_downstream_max_connections",
                    "typed_config": {
                        "@type": "type.googleapis.com/envoy.extensions.resource_monitors."
                        "downstream_connections.v3.DownstreamConnectionsConfig",
                        "max_active_downstream_connections": 50_000,
                    },
                }
            ]
        },
    }


def _agent_cluster(socket: Path) -> dict[str, Any]:
    host = {"endpoint": {"address": {"pipe": {"path": str(socket)}}}}
    return {
        "name": _AGENT,
        "type": "STATIC",
        "connect_timeout": "1s",
        "load_assignment": {"cluster_name": _AGENT, "endpoints": [{"lb_endpoints": [host]}]},
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": {"http2_protocol_options": {}},
            }
        },
    }
