"""The listener for clients.

Decides TLS, protocols, limits on clients, and the filter chain. The routes decide all else about a
request. Must not know any route. Sources: Envoy's API pages "Listener configuration" and "HTTP
connection manager", its page "Configuring Envoy as an edge proxy".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from amphitrite.dataplane.envoy.answers import sample_filter
from amphitrite.dataplane.envoy.filters import (
    bodiless_requests,
    conditional_filters,
    form_bodies,
    jwt,
    model_errors,
    nested_bodies,
    queueing,
    request_ids,
    sequence_affinity,
    unsized_bodies,
)
from amphitrite.dataplane.envoy.filters.access_log import access_log
from amphitrite.dataplane.envoy.filters.timeouts import IDLE_S, RECEIVED_S
from amphitrite.dataplane.envoy.protobuf.common_values import ADS_AT_START, seconds
from amphitrite.dataplane.envoy.translate import grpc_routes, health_route, held_requests, host_names, plain_http
from amphitrite.dataplane.envoy.translate.secrets import CERTIFICATE
from amphitrite.dataplane.table.routing_table import Address

_EXTENSIONS = "type.googleapis.com/envoy.extensions"
#: The index of the endpoint's name in ``/endpoints/<name>/…``. Element 0 precedes the first slash.
_SCOPE_ELEMENT = 2


def listener(address: Address, log: Path | None, scoring_domain: str | None = None) -> dict[str, Any]:
    """The ``Listener`` message. ``scoring_domain``: endpoints are served at host names below it
    too.

    It does not share its port. With SO_REUSEPORT a second proxy on the same port would silently
    take half of the connections, where it must refuse to start.
    """
    socket: dict[str, Any] = {"address": address.host, "port_value": address.port}
    if address.host == "::":
        socket["ipv4_compat"] = True
    return {
        "name": "scoring",
        "address": {"socket_address": socket},
        "enable_reuse_port": False,
        "connection_balance_config": {"exact_balance": {}},
        "per_connection_buffer_limit_bytes": 1024 * 1024,
        "listener_filters": [plain_http.inspector()],
        # A connection ends that has not said by then what it is.
        "listener_filters_timeout": "10s",
        "filter_chains": [
            _chain(connection_manager(log)),
            plain_http.filter_chain(connection_manager(log)),
            *([] if scoring_domain is None else [_host_filter_chain(scoring_domain, log)]),
        ],
    }


def _host_filter_chain(scoring_domain: str, log: Path | None) -> dict[str, Any]:
    """The filter chain of connections for host names. The proxy's health check is not served
    there."""
    manager = connection_manager(log)
    del manager["early_header_mutation_extensions"]
    manager["scoped_routes"]["scope_key_builder"] = {"fragments": [host_names.scope_fragment()]}
    manager["http_filters"] = [item for item in manager["http_filters"] if item != health_route.http_filter()]
    manager |= {"strip_any_host_port": True, "strip_trailing_host_dot": True}
    return {
        "name": "by host",
        "filter_chain_match": host_names.filter_chain_match(scoring_domain),
        **_chain(manager),
    }


def _chain(manager: dict[str, Any]) -> dict[str, Any]:
    return {
        "transport_socket": _tls(),
        "transport_socket_connect_timeout": "10s",
        "filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}],
    }


def connection_manager(log: Path | None) -> dict[str, Any]:
    """The ``HttpConnectionManager`` message, for addresses by path."""
    return {
        "@type": f"{_EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "scoring",
        "scoped_routes": {
            "name": "endpoints",
            "scope_key_builder": {
                "fragments": [
                    {
                        "header_value_extractor": {
                            "name": grpc_routes.SCOPE,
                            "element_separator": "/",
                            "index": _SCOPE_ELEMENT,
                        }
                    }
                ]
            },
            "rds_config_source": ADS_AT_START,
            "scoped_rds": {"scoped_rds_config_source": ADS_AT_START},
        },
        "http_filters": [
            health_route.http_filter(),
            request_ids.http_filter(),
            conditional_filters.http_filter("amphitrite.requests", request_ids.rule(), form_bodies.rule()),
            jwt.http_filter(),
            bodiless_requests.http_filter(),
            unsized_bodies.http_filter(),
            nested_bodies.http_filter(),
            model_errors.http_filter(),
            sequence_affinity.http_filter(),
            *held_requests.http_filters(),
            # Last, so that a place is taken by a request that goes on at once.
            queueing.http_filter(),
            sample_filter.http_filter(),
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": f"{_EXTENSIONS}.filters.http.router.v3.Router"},
            },
        ],
        "early_header_mutation_extensions": grpc_routes.scope_header(),
        "local_reply_config": grpc_routes.local_reply_config(),
        "access_log": access_log(log),
        # A path is normalised before anything is decided by it.
        "normalize_path": True,
        "merge_slashes": True,
        "path_with_escaped_slashes_action": "REJECT_REQUEST",
        # No client is internal: not even one on loopback may set timeouts and retries by x-envoy-*
        # headers.
        "use_remote_address": True,
        # An empty list would mean the private ranges, so this is an address of no machine (RFC
        # 5737).
        "internal_address_config": {"cidr_ranges": [{"address_prefix": "192.0.2.1", "prefix_len": 32}]},
        "server_name": "amphitrite",
        "generate_request_id": True,
        "always_set_request_id_in_response": True,
        "common_http_protocol_options": {
            "idle_timeout": "3600s",
            "max_headers_count": 100,
            # Some servers take x_a for x-a: a client must not set a forbidden header by the other
            # name.
            "headers_with_underscores_action": "DROP_HEADER",
        },
        # A proxy in front may speak HTTP/1.0, nginx by default.
        "http_protocol_options": {"accept_http_10": True, "default_host_for_http_10": "amphitrite"},
        "http2_protocol_options": {
            "max_concurrent_streams": 128,
            "initial_stream_window_size": 1024 * 1024,
            "initial_connection_window_size": 4 * 1024 * 1024,
        },
        "max_request_headers_kb": 60,
        "request_headers_timeout": "10s",
        "request_timeout": seconds(RECEIVED_S),
        "stream_idle_timeout": seconds(IDLE_S),
        "drain_timeout": "5s",
    }


def _tls() -> dict[str, Any]:
    return {
        "name": "envoy.transport_sockets.tls",
        "typed_config": {
            "@type": f"{_EXTENSIONS}.transport_sockets.tls.v3.DownstreamTlsContext",
            "common_tls_context": {
                "tls_params": {"tls_minimum_protocol_version": "TLSv1_2"},
                # The first that the client has too. gRPC has HTTP/2 alone. Some of the others lose
                # an answer in HTTP/2 that comes before the end of the request (decision 0008).
                "alpn_protocols": ["http/1.1", "h2"],
                "tls_certificate_sds_secret_configs": [{"name": CERTIFICATE, "sds_config": ADS_AT_START}],
            },
        },
    }
