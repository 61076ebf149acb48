"""The control plane with simulated instances, which all use one upstream: PORT OPTIONS...

Everything else is real: store, reconciler, plans, the feed to the agent, the agent, Envoy. So the
cost of a thousand endpoints can be measured on a machine that has no room for two thousand Tritons.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

from amphitrite.controlplane.__main__ import main
from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.core.observed.usage import InstanceUsage
from amphitrite.controlplane.process import assembly
from amphitrite.dataplane.table.routing_table import Address
from tests.controlplane.runtimes.memory_runtime import MemoryRuntime


class ImaginedRuntime(MemoryRuntime):
    """Every instance listens on ``port``."""

    def __init__(self, port: int) -> None:
        super().__init__(time.time)
        self._address = Address("127.0.0.1", port, port)

    def _put(self, instance: Instance) -> None:
        if instance.phase == "starting":
            instance = replace(instance, phase="ready", address=self._address, ready_at=time.time(), engine="none")
        elif instance.phase == "stopping":
            instance = replace(instance, phase="exited", address=None, exited_at=time.time(), exit_code=0)
        super()._put(instance)

    def usage(self) -> tuple[InstanceUsage, ...]:
        """They use nothing."""
        return ()


def imagine(port: int) -> None:
    runtime = ImaginedRuntime(port)
    assembly._local = lambda settings, models, isolation: runtime


if __name__ == "__main__":
    imagine(int(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
