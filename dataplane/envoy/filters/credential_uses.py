"""Which credential let a request in, counted by Envoy itself.

Decides the virtual clusters of a scoring address: one for each key, named by its fingerprint. Envoy looks for the first
that a request fulfils when it passes the request on, and counts it under the two names of host and virtual cluster: no
filter, no line of a log, and two counters for each endpoint. What the routes themselves answer is not counted.
Must not know when a use was, nor which key is called the primary one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amphitrite.dataplane.metrics.counters import CREDENTIAL, TOKEN, Use, credentials
from amphitrite.dataplane.table.routing_table import Route

_COUNTER = "upstream_rq_total"
#: Envoy's own name of the counter: of the many of a virtual cluster the only one that is made. The virtual cluster
#: ``other``, which Envoy adds, has none.
STAT = rf"vhost\.[^.]+\.vcluster\.({CREDENTIAL.pattern})\.{_COUNTER}"
#: The same in Prometheus' format.
NAME = f"envoy_vhost_vcluster_{_COUNTER}"


def virtual_clusters(route: Route) -> list[dict[str, Any]]:
    """The ``virtual_clusters`` of the ``VirtualHost``. No request without a credential is ever passed on, so that all
    that are, at an endpoint with tokens, showed one: the filter that verified it has taken it out of the request."""
    if route.auth != "key":
        return [{"name": TOKEN, "headers": [{"name": ":path", "present_match": True}]}]
    return [
        {"name": name, "headers": [{"name": "authorization", "string_match": {"exact": f"Bearer {key.reveal()}"}}]}
        for name, key in zip(credentials(route), route.credentials, strict=True)
    ]


def of(labels: Mapping[str, str]) -> Use | None:
    """Which use a line ``NAME`` counts."""
    endpoint, credential = labels.get("envoy_virtual_host", ""), labels.get("envoy_virtual_cluster", "")
    return (endpoint, credential) if CREDENTIAL.fullmatch(credential) else None
