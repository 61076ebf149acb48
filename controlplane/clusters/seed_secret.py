"""The newest routing table in a Secret, for proxies that start while no control plane answers.

Decides when the Secret is written: whenever its content is another than the newest table's. Needs the verbs get and
patch of that one Secret, which exists already. Must not know how a table is encoded, nor who reads it.
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
#: What somebody else has done to the Secret is set right after this time at the latest.
RESYNC_S = 60.0
#: How long a wait for a newer table is, at the end of which a term's end is noticed.
LOOK_S = 1.0


class TableSecret:
    """One named Secret. ``newer(version, timeout_s)``: the newest table if it is newer than ``version`` by then."""

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
        """Keep the Secret current until ``stop``. What fails is logged and tried again."""
        table: RoutingTable | None = None
        kept, due, failures = 0, 0.0, 0
        while not stop.is_set():
            table = self._newer(0 if table is None else table.version, LOOK_S) or table
            if table is None or (table.version == kept and time.monotonic() < due):
                continue
            try:
                self.keep(table)
                kept, due, failures = table.version, time.monotonic() + RESYNC_S, 0
            except Error as error:
                failures += 1
                log.warning("the table's Secret is not current: %s", error.message)
                stop.wait(backoff_s(failures))

    def keep(self, table: RoutingTable) -> bool:
        """Make the Secret hold ``table`` (whatever it held before); whether it had to be written.

        Raises Error: KubernetesUnaccessible; ResourceNotFound (no such Secret); LimitExceeded (too large for one)."""
        seed = base64.b64encode(encode_seed(table)).decode("ascii")
        if (self._cluster.get(self._path).get("data") or {}).get(KEY) == seed:
            return False
        self._cluster.patch(self._path, {"data": {KEY: seed}}, FIELD_MANAGER)
        log.info("the table's Secret holds version %d", table.version)
        return True
