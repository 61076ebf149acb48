"""Ending whatever runs of a home: its control plane, then its data plane and its instances.

Decides the order, and what is done to those that do not end by themselves. Must not know how any of them was started,
nor need anything that a running control plane needs: whoever stops does not wait for imports.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

from amphitrite.controlplane.process import agent_process, server_file
from amphitrite.controlplane.settings.home import Home
from amphitrite.dataplane.machine import processes


def stop(home: Home, *, keep_serving: bool, stop_instances: Callable[[Home, float], None]) -> None:
    """End the control plane of ``home`` if it runs, then (unless ``keep_serving``) Envoy with its agent, after
    draining, and every instance. Afterwards no process and no socket of this home is left."""
    record = processes.read(home.server_file)
    if record is not None and processes.send_signal(record, signal.SIGTERM):
        agent_process.wait_gone(record, 30.0)
        processes.send_signal(record, signal.SIGKILL)
        agent_process.wait_gone(record, 5.0)
    if not keep_serving:
        agent_process.stop(home, deadline_s=200.0)
        stop_instances(home, 10.0)
    server_file.ended(home)
