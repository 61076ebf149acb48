"""How this control plane becomes the leader.

Decides it from the settings: by election if a Lease is named; otherwise it must be the only control
plane of its database, which a lock confirms. Must not know what a leader does.
"""

from __future__ import annotations

import logging
import secrets
import threading
from contextlib import ExitStack

from amphitrite.controlplane.leadership.election import AlwaysLeader, Election, Leadership
from amphitrite.controlplane.settings.settings import Settings
from amphitrite.controlplane.store.sql.transactions import CONTROL_PLANE
from amphitrite.controlplane.store.state.database import SqlStore

log = logging.getLogger(__name__)


def choose(settings: Settings, store: SqlStore, stack: ExitStack, stop: threading.Event) -> Leadership:
    """The leadership of this process. ``stop`` is set if another process takes the database's lock.

    Raises Error Conflict (another process holds the lock) or KubernetesUnaccessible.
    """
    cluster = settings.cluster
    if cluster.lease_name is None:
        stack.enter_context(store.database.hold_named_lock(CONTROL_PLANE, lambda: _displaced(stop)))
        return AlwaysLeader()
    from amphitrite.controlplane.clusters.own_cluster import connect
    from amphitrite.controlplane.leadership.lease_store import LeaseStore

    own = connect(cluster)
    stack.callback(own.close)
    # A pod's container may restart under the same name while the previous one is still ending.
    me = f"{cluster.identity}_{secrets.token_hex(4)}"
    return Election(LeaseStore(own, cluster.own_namespace, cluster.lease_name), me)


def _displaced(stop: threading.Event) -> None:
    log.error("another control plane took over the database while the connection was lost; stopping")
    stop.set()
