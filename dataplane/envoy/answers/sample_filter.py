"""Shows the agent a share of the requests to a deployment, with their answers.

Decides which requests can be shown, and what of them. No request waits for the agent: in
observability mode Envoy sends copies and expects nothing back. If the agent is gone or too slow,
copies are lost and nothing else happens. Credentials are not among what is shown. Must not know
what the agent does with it. Source: Envoy's API package ``filters.http.ext_proc.v3``.
"""

from __future__ import annotations

from typing import Any

from amphitrite.dataplane.comparison.answers import BODY_MAX, JSON_LENGTH
from amphitrite.dataplane.envoy.protobuf.common_values import seconds

#: The cluster of the agent's service.
CLUSTER = "answers"
#: The metadata of the agent's call that names the endpoint.
ENDPOINT = "amphitrite-endpoint"
#: How many requests are shown at once. The next ones are not. The agent itself takes fewer, and
#: counts those that it does not take.
AT_ONCE_MAX = 64
#: With flow control, a copy that the agent does not take would in the end stop its original.
RUNTIME = {"envoy.reloadable_features.grpc_side_stream_flow_control": False}

_FILTER = "amphitrite.answer_samples"
_TYPE = "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3"
#: How long the agent gets for what is still on its way when a request has ended.
_REST_S = 1.0
_SHOWN = (":method", ":path", ":status", "content-encoding", "content-type", JSON_LENGTH)
#: Conditions (``HeaderMatcher``): a body that is not too large, of which nobody need know how it is
#: compressed.
CONDITIONS: list[dict[str, Any]] = [
    {"name": "content-length", "range_match": {"start": 1, "end": BODY_MAX + 1}},
    {"name": "content-encoding", "present_match": True, "invert_match": True},
]
_INFER = "/infer"
#: Condition on a path below the scoring address: all that KServe V2 answers with tensors.
BY_PATH: dict[str, Any] = {"name": ":path", "string_match": {"safe_regex": {"regex": rf"[^?]*{_INFER}(\?.*)?"}}}


def http_filter() -> dict[str, Any]:
    """The filter for the connection manager, right before the router. It is off unless a route
    turns it on."""
    return {
        "name": _FILTER,
        "disabled": True,
        "typed_config": {
            "@type": f"{_TYPE}.ExternalProcessor",
            "grpc_service": {"envoy_grpc": {"cluster_name": CLUSTER}},
            "observability_mode": True,
            "failure_mode_allow": True,
            "deferred_close_timeout": seconds(_REST_S),
            "processing_mode": {
                "request_header_mode": "SEND",
                "request_body_mode": "STREAMED",
                "request_trailer_mode": "SKIP",
                "response_header_mode": "SEND",
                "response_body_mode": "STREAMED",
                "response_trailer_mode": "SKIP",
            },
            "forward_rules": {"allowed_headers": {"patterns": [{"exact": name} for name in _SHOWN]}},
        },
    }


def enabled(endpoint: str) -> dict[str, Any]:
    """Per-filter configuration of a route whose requests are shown."""
    return _config({"overrides": {"grpc_initial_metadata": [{"key": ENDPOINT, "value": endpoint}]}})


def inactive() -> dict[str, Any]:
    """Per-filter configuration under which the filter is there and does nothing. Which filters a
    request passes is decided by the route that it finds first (see ``jwt.other_filters``), so a
    virtual host that has a route with the filter needs this."""
    return _config({"disabled": True})


def is_infer(path: str) -> bool:
    """Whether this upstream path is one that KServe V2 answers with tensors."""
    return path.endswith(_INFER)


def _config(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        _FILTER: {
            "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig",
            "config": {"@type": f"{_TYPE}.ExtProcPerRoute", **settings},
        }
    }
