"""Which credential let a request in, counted by Envoy.

Decides the virtual clusters of a scoring address: one for each key, named by its fingerprint. Envoy
looks for the first virtual cluster that a request matches when it passes the request on, and counts
the request under the names of host and virtual cluster. That costs no filter and no log line. What
the routes themselves answer is not counted. Must not know when a credential was used, nor which key
is the primary one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amphitrite.dataplane.metrics.counters import CREDENTIAL, TOKEN, Use, credentials
from amphitrite.dataplane.table.routing_table import Route

_COUNTER = "upstream_rq_total"
#: Envoy's own name of the counter. Of the many counters of a virtual cluster it is the only one
#: that is kept. The virtual cluster ``other``, which Envoy adds, has none.
STAT = rf"vhost\.[^.]+\.vcluster\.({CREDENTIAL.pattern})\.{_COUNTER}"
#: The same in Prometheus' text format.
NAME = f"envoy_vhost_vcluster_{_COUNTER}"


def virtual_clusters(route: Route) -> list[dict[str, Any]]:
    """The ``virtual_clusters`` of the ``VirtualHost``.

    An endpoint with tokens has one, which every request matches. No request without a valid token
    is passed on, and the filter that verifies a token removes it.
    """
    if route.auth != "key":
        return [{"name": TOKEN, "headers": [{"name": ":path", "present_match": True}]}]
    return [
        # The routes have let the key in. How its scheme is written does not matter here.
        {"name": name, "headers": [{"name": "authorization", "string_match": {"suffix": f" {key.reveal()}"}}]}
        for name, key in zip(credentials(route), route.credentials, strict=True)
    ]


def credential_use(labels: Mapping[str, str]) -> Use | None:
    """The use that a line of ``NAME`` counts; None: it counts no credential."""
    endpoint, credential = labels.get("envoy_virtual_host", ""), labels.get("envoy_virtual_cluster", "")
    return (endpoint, credential) if CREDENTIAL.fullmatch(credential) else None
