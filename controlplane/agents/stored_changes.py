"""Changes that other control planes have stored.

Decides when to read them: when the database notifies, and every few seconds anyway. Must not know
databases; it is given functions that listen and read.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from amphitrite.controlplane.agents.agent_registry import TableFeed
from amphitrite.dataplane.table.routing_table import RoutingTable

log = logging.getLogger(__name__)

#: Seconds between reads, because a notification may be lost with its connection.
PERIOD_S = 2.0


class StoredChanges:
    """Keeps ``feed`` at the stored table, and wakes the reconciler after changes. Run it in one
    thread."""

    def __init__(
        self,
        listen: Callable[[Callable[[], None]], Callable[[], None]],
        published: Callable[[], RoutingTable | None],
        feed: TableFeed,
        refresh: Callable[[], None],
        wake_reconciler: Callable[[], None],
    ) -> None:
        """``listen``: calls its argument, from any thread, after others have written; returns a
        function that ends it. ``refresh``: reads other stored state. ``wake_reconciler``: called
        after changes."""
        self._listen, self._published, self._feed = listen, published, feed
        self._refresh, self._wake_reconciler = refresh, wake_reconciler
        self._event = threading.Event()

    def run(self, stop: threading.Event) -> None:
        """Runs until ``stop`` is set and ``wake`` is called."""
        end = self._listen(self._on_change)
        try:
            while not stop.is_set():
                self._event.clear()
                try:
                    self.refresh()
                except Exception as exc:
                    log.warning("cannot read stored changes; continuing with the previous state: %s", exc)
                self._event.wait(PERIOD_S)
        finally:
            end()

    def refresh(self) -> None:
        """Reads the stored state."""
        self._refresh()
        table = self._published()
        if table is not None and table.version > 0:
            self._feed.published(table)

    def wake(self) -> None:
        self._event.set()

    def _on_change(self) -> None:
        self._event.set()
        self._wake_reconciler()
