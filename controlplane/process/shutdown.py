"""Stops everything that runs for a home: its control plane, then its data plane and instances.

Decides the order, and what happens to processes that do not end in time. Must not know how they
were started, and must not import what only a running control plane needs, because stopping should
be fast.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

from amphitrite.controlplane.process import agent_process, server_file
from amphitrite.controlplane.settings.home import Home
from amphitrite.dataplane.machine import processes


def stop(home: Home, *, keep_serving: bool, stop_instances: Callable[[Home, float], None]) -> None:
    """Stops the control plane of ``home`` if it runs, then (unless ``keep_serving``) drains and
    stops Envoy with its agent, and every instance. Afterwards no process or socket of this home is
    left."""
    record = processes.read(home.server_file)
    if record is not None and processes.send_signal(record, signal.SIGTERM):
        agent_process.wait_for_exit(record, 30.0)
        processes.send_signal(record, signal.SIGKILL)
        agent_process.wait_for_exit(record, 5.0)
    if not keep_serving:
        agent_process.stop(home, deadline_s=200.0)
        stop_instances(home, 10.0)
    server_file.ended(home)
