"""The proxy's own health, for the kubelet and load balancers.

Decides the path and what is said there: 200 while the proxy serves, 503 once it was told to leave. It is the only path
that needs no key, and says nothing else. Must not know when the proxy leaves.
"""

from __future__ import annotations

from typing import Any

PATH = "/healthz"


def http_filter() -> dict[str, Any]:
    """The filter for the connection manager; it answers by itself, before any route is looked for.

    While the proxy leaves, the filter adds ``x-envoy-immediate-health-check-fail`` to all answers: an Envoy in front of
    this one then sends it nothing more, without waiting for its next probe.
    """
    return {
        "name": "envoy.filters.http.health_check",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.health_check.v3.HealthCheck",
            "pass_through_mode": False,
            "headers": [{"name": ":path", "string_match": {"exact": PATH}}],
        },
    }
