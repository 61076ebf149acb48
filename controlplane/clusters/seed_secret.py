"""The newest routing table in a Secret, for proxies that start while no control plane answers.

Decides when the Secret is written: whenever it differs from the newest table. The Secret must
exist. The service account needs the verbs get and patch on it. Must not know how a table is encoded
or who reads it.
"""

from __future__ import annotations

import base64
import logging
import threading
import time
from collections.abc import Callable

from amphitrite.controlplane.core.planning.rollout import backoff_s
from amphitrite.controlplane.runtimes.kubernetes.client.api_client import Cluster
from amphitrite.dataplane.table.routing_table import RoutingTable
from amphitrite.dataplane.table.seed import encode_seed
from amphitrite.schemas.errors import Error

log = logging.getLogger(__name__)

KEY = "routing-table.json.gz"
FIELD_MANAGER = "amphitrite-table"
#: A change of the Secret by somebody else is undone within this time.
RESYNC_S = 60.0
#: The longest wait for a newer table. ``run`` checks ``stop`` after each wait.
WAIT_S = 1.0


class TableSecret:
    """One Secret. ``newer(version, timeout_s)`` waits for a table newer than ``version``."""

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        name: str,
        newer: Callable[[int, float], RoutingTable | None],
    ) -> None:
        self._cluster, self._newer = cluster, newer
        self._path = f"/api/v1/namespaces/{namespace}/secrets/{name}"

    def run(self, stop: threading.Event) -> None:
        """Keeps the Secret current until ``stop``. Logs failures and tries again."""
        table: RoutingTable | None = None
        kept, due, failures = 0, 0.0, 0
        while not stop.is_set():
            table = self._newer(0 if table is None else table.version, WAIT_S) or table
            if table is None or (table.version == kept and time.monotonic() < due):
                continue
            try:
                self.keep(table)
                kept, due, failures = table.version, time.monotonic() + RESYNC_S, 0
            except Error as error:
                failures += 1
                log.warning("cannot update the Secret of the routing table; trying again: %s", error.message)
                stop.wait(backoff_s(failures))

    def keep(self, table: RoutingTable) -> bool:
        """Writes ``table`` to the Secret if needed. Returns whether it was written.

        Raises Error: KubernetesUnaccessible, ResourceNotFound (no such Secret), LimitExceeded (the
        table is too large for a Secret).
        """
        seed = base64.b64encode(encode_seed(table)).decode("ascii")
        if (self._cluster.get(self._path).get("data") or {}).get(KEY) == seed:
            return False
        self._cluster.patch(self._path, {"data": {KEY: seed}}, FIELD_MANAGER)
        log.info("wrote version %d of the routing table to its Secret", table.version)
        return True
