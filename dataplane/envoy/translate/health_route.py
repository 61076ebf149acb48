"""The proxy's own health, for the kubelet and load balancers.

Decides the path and the answer: 200 while the proxy serves, 503 while it drains. No other path is
answered without a key. Must not know when the proxy drains. Source: Envoy's page "Health check"
(HTTP filters).
"""

from __future__ import annotations

from typing import Any

PATH = "/healthz"


def http_filter() -> dict[str, Any]:
    """The filter for the connection manager. It answers by itself, before any route is looked for.

    While the proxy drains, the filter adds ``x-envoy-immediate-health-check-fail`` to all
    responses. An Envoy in front of this one then sends no more requests, without waiting for its
    next probe.
    """
    return {
        "name": "envoy.filters.http.health_check",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.health_check.v3.HealthCheck",
            "pass_through_mode": False,
            "headers": [{"name": ":path", "string_match": {"exact": PATH}}],
        },
    }
