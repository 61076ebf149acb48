"""Values that recur in Envoy's messages: durations, and where a resource comes from.

Decides their JSON form. Must not know what they are used for.
"""

from __future__ import annotations

from typing import Any

#: Where a resource is to be had: on the one aggregated stream.
ADS: dict[str, Any] = {"ads": {}, "resource_api_version": "V3"}
#: The same for what a starting proxy must have before it listens: it waits for that as long as it takes, rather than
#: answer without routes after 15 seconds.
ADS_AT_START: dict[str, Any] = {**ADS, "initial_fetch_timeout": "0s"}


def seconds(value: float) -> str:
    """A protobuf duration in its JSON form."""
    return f"{value:.3f}s"
