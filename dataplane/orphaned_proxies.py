"""The proxy processes that an agent has left on this machine, for whoever starts and stops agents.

Decides which implementation is asked. Must not know how it looks for them. A proxy outlives its
agent, so the local control plane must be able to find one and end it. This module and ``__main__``
are the only ones outside of a proxy's own folder that import it; this one loads nothing that only
an agent needs.
"""

from __future__ import annotations

from amphitrite.dataplane.envoy.process.hot_restart import LONGEST_SOCKET_NAME
from amphitrite.dataplane.envoy.process.orphans import listen_address, terminate_all

__all__ = ["LONGEST_SOCKET_NAME", "listen_address", "terminate_all"]
