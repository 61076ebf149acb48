"""Values that recur in Envoy's messages: durations, and the source of a resource.

Decides their JSON form. Must not know what they are used for.
"""

from __future__ import annotations

from typing import Any

#: A ``ConfigSource``: the aggregated discovery service.
ADS: dict[str, Any] = {"ads": {}, "resource_api_version": "V3"}
#: The same for what a starting proxy needs before it listens. It waits as long as that takes. By
#: default it would answer without routes after 15 seconds.
ADS_AT_START: dict[str, Any] = {**ADS, "initial_fetch_timeout": "0s"}
#: The cluster by which Envoy reaches the agent's services for single requests.
CALLOUTS = "callouts"


def seconds(value: float) -> str:
    """A protobuf duration in its JSON form."""
    return f"{value:.3f}s"
