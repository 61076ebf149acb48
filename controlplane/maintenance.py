"""What must be done now and then, whether or not anything changes.

Decides how often certificates are looked at and garbage is collected. Must not know how either is done.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

from amphitrite.controlplane import certificates
from amphitrite.controlplane.certificates import Certificates
from amphitrite.controlplane.home import Home
from amphitrite.controlplane.runtimes import Runtime
from amphitrite.controlplane.store.models import ModelStore
from amphitrite.controlplane.store.protocol import Store

log = logging.getLogger(__name__)

PERIOD_S = 3600.0


class Maintenance:
    """``reload`` is given a renewed certificate."""

    def __init__(
        self,
        home: Home,
        hosts: Iterable[str],
        store: Store,
        models: ModelStore,
        runtime: Runtime,
        *,
        reload: Callable[[Certificates], None],
    ) -> None:
        self._home, self._hosts = home, tuple(hosts)
        self._store, self._models, self._runtime, self._reload = store, models, runtime, reload
        self._not_after: float | None = None

    def run(self, stop: threading.Event) -> None:
        """Once now, then every hour until ``stop``."""
        while not stop.is_set():
            for task in (self.renew, self.collect):
                try:
                    task(time.time())
                except Exception:
                    log.exception("maintenance failed; the next turn is in an hour")
            stop.wait(PERIOD_S)

    def renew(self, now: float) -> None:
        """Renew the server's certificate when it is due; Envoy follows the files by itself."""
        tls = certificates.ensure(self._home, self._hosts, now)
        if self._not_after is not None and tls.not_after != self._not_after:
            self._reload(tls)
        self._not_after = tls.not_after

    def collect(self, now: float) -> None:
        """Remove model files that no version, deployment or instance uses."""
        in_use = {d.workload.model.digest for d in self._store.load_world().deployments}
        in_use |= {i.workload.model.digest for i in self._runtime.observe()}
        self._models.collect_garbage(now, in_use)
