"""Periodic maintenance by one of the control planes that share a store.

Decides how often garbage is collected. Must not know how.
"""

from __future__ import annotations

import logging
import threading
import time

from amphitrite.controlplane.runtimes.runtime import Runtime
from amphitrite.controlplane.services.in_use_models import digests_in_use, versions_in_use
from amphitrite.controlplane.store.assets.model_store import ModelStore
from amphitrite.controlplane.store.state.store import Store

log = logging.getLogger(__name__)

PERIOD_S = 3600.0


class Maintenance:
    """The leading control plane runs it in one thread."""

    def __init__(self, store: Store, models: ModelStore, runtime: Runtime) -> None:
        self._store, self._models, self._runtime = store, models, runtime

    def run(self, stop: threading.Event) -> None:
        """Collects garbage now, and then every hour until ``stop``."""
        while not stop.is_set():
            try:
                self.collect(time.time())
            except Exception:
                log.exception("maintenance failed; the next attempt is in one hour")
            stop.wait(PERIOD_S)

    def collect(self, now: float) -> None:
        """Deletes model files that no version, deployment or instance uses, and notes what is in
        use."""
        self._store.mark_models_used(versions_in_use(self._store, self._runtime).keys(), now=now)
        self._models.collect_garbage(now, digests_in_use(self._store, self._runtime))
