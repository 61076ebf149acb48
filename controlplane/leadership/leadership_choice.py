"""How this control plane comes to lead.

Decides it from the settings: by election where a Lease is named; else it is alone, which the database must confirm.
Must not know what a leader does.
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
    """``stop`` is set when another process has become the one control plane of the database meanwhile.

    Raises Error: Conflict (another one has it), KubernetesUnaccessible.
    """
    cluster = settings.cluster
    if cluster.lease_name is None:
        stack.enter_context(store.database.hold_named_lock(CONTROL_PLANE, lambda: _displaced(stop)))
        return AlwaysLeader()
    from amphitrite.controlplane.clusters.own_cluster import connect
    from amphitrite.controlplane.leadership.lease_store import LeaseStore

    own = connect(cluster)
    stack.callback(own.close)
    # A pod's container may be started again under the same name while the one before still ends.
    me = f"{cluster.identity}_{secrets.token_hex(4)}"
    return Election(LeaseStore(own, cluster.own_namespace, cluster.lease_name), me)


def _displaced(stop: threading.Event) -> None:
    log.error("another control plane has taken the database while the connection to it was lost; ending")
    stop.set()
