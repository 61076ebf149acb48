"""Envoy processes that no agent supervises: an Envoy outlives its agent.

Decides how they are found, where they listen and how they end. Must not know why their agent ended.
"""

from __future__ import annotations

import json
from pathlib import Path

from amphitrite.dataplane.envoy.process import hot_restart
from amphitrite.dataplane.envoy.process.file_names import bootstrap_file, process_record
from amphitrite.dataplane.table.routing_table import Address


def listen_address(state: Path) -> Address | None:
    """Where the Envoy of this state directory listens. None: none runs, or its bootstrap file
    cannot be read."""
    if not hot_restart.find_running(bootstrap_file(state), process_record(state)):
        return None
    try:
        bootstrap = json.loads(bootstrap_file(state).read_text(encoding="utf-8"))
        address = bootstrap["static_resources"]["listeners"][0]["address"]["socket_address"]
        return Address(str(address["address"]), int(address["port_value"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None


def terminate_all(state: Path, within_s: float) -> None:
    """End every Envoy of this state directory; kill each that takes longer than ``within_s``."""
    hot_restart.terminate_all(bootstrap_file(state), process_record(state), within_s)
