"""A request above the limit of its deployment waits for a place, where the deployment asks for it.

Decides what Envoy tells the agent about a request that may have to wait, and what happens when the
agent does not answer. Envoy opens one stream to the agent for each such request and closes it when
the request has ended, so the agent knows what is in flight. No body goes there. Must not know who
waits how long (see ``callouts``). Source: Envoy's API page "External Processing Filter".
"""

from __future__ import annotations

from typing import Any

from amphitrite.dataplane.envoy.protobuf.common_values import CALLOUTS

#: The metadata of the stream: the cluster whose places are counted.
CLUSTER = "amphitrite-cluster"
#: The metadata of the stream: how long the request may wait for one, in milliseconds.
WAIT_MS = "amphitrite-wait-ms"
#: Also the namespace of the dynamic metadata that the agent sets.
FILTER = "amphitrite.queue"
#: In the dynamic metadata of a request that the agent refuses.
REFUSED = "refused"

_TYPE = "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3"
#: How long the agent may take to say that a request goes on, or must wait. After that the request
#: goes on by itself.
_ANSWER_WITHIN = "1s"
#: The most that the agent may ask for instead, and the most that Envoy allows. A wait is at most
#: three minutes long.
_WAIT_MAX = "3600s"


def http_filter() -> dict[str, Any]:
    """The filter for the connection manager. It is off unless a route turns it on.

    A request whose agent is gone, or does not answer, goes on. Then the limit of the cluster itself
    counts, and nobody waits.
    """
    return {
        "name": FILTER,
        "disabled": True,
        "typed_config": {
            "@type": f"{_TYPE}.ExternalProcessor",
            "grpc_service": {"envoy_grpc": {"cluster_name": CALLOUTS}},
            "failure_mode_allow": True,
            "processing_mode": {
                "request_header_mode": "SEND",
                "request_body_mode": "NONE",
                "request_trailer_mode": "SKIP",
                "response_header_mode": "SKIP",
                "response_body_mode": "NONE",
                # It keeps the stream open until the request has ended.
                "response_trailer_mode": "SEND",
            },
            # The agent needs to know that there is a request, and nothing of it.
            "forward_rules": {"allowed_headers": {"patterns": [{"exact": ":method"}]}},
            "mutation_rules": {"disallow_all": {"value": True}},
            "metadata_options": {"receiving_namespaces": {"untyped": [FILTER]}},
            "route_cache_action": "RETAIN",
            "message_timeout": _ANSWER_WITHIN,
            "max_message_timeout": _WAIT_MAX,
        },
    }


def enabled(cluster: str, wait_s: float) -> dict[str, Any]:
    """Per-filter configuration of a route to ``cluster`` whose requests may wait so many
    seconds."""
    metadata = {CLUSTER: cluster, WAIT_MS: f"{wait_s * 1000:.0f}"}
    return _per_route_config(
        {"overrides": {"grpc_initial_metadata": [{"key": name, "value": text} for name, text in metadata.items()]}}
    )


def inactive() -> dict[str, Any]:
    """Per-filter configuration under which the filter is there and does nothing (see
    ``jwt.other_filters``)."""
    return _per_route_config({"disabled": True})


def refused(*, negated: bool = False) -> dict[str, Any]:
    """The condition (``AccessLogFilter``) that the agent has refused the request; ``negated``: that
    it has not."""
    matcher = {"filter": FILTER, "path": [{"key": REFUSED}], "value": {"bool_match": not negated}}
    return {"metadata_filter": {"matcher": matcher, "match_if_key_not_found": negated}}


def _per_route_config(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        FILTER: {
            "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig",
            "config": {"@type": f"{_TYPE}.ExtProcPerRoute", **settings},
        }
    }
