"""What a control plane knows of what the others write.

Decides when it looks: as soon as the database tells of a change, and every few seconds whatever it tells. Must not know
databases: it is given what wakes it and what it reads.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from amphitrite.controlplane.agents.agent_registry import TableFeed
from amphitrite.dataplane.table.routing_table import RoutingTable

log = logging.getLogger(__name__)

#: A notification may be lost with its connection.
PERIOD_S = 2.0


class Following:
    """Keeps ``feed`` at the table that is stored, and passes on that something has changed. One thread runs it."""

    def __init__(
        self,
        listen: Callable[[Callable[[], None]], Callable[[], None]],
        published: Callable[[], RoutingTable | None],
        feed: TableFeed,
        refresh: Callable[[], None],
        changed: Callable[[], None],
    ) -> None:
        """``listen``: calls its argument, from any thread, after others have written; its answer ends that.
        ``refresh``: takes over whatever else is stored. ``changed``: there may be something to reconcile."""
        self._listen, self._published, self._feed = listen, published, feed
        self._refresh, self._changed = refresh, changed
        self._event = threading.Event()

    def run(self, stop: threading.Event) -> None:
        """Until ``stop`` (and ``wake``)."""
        end = self._listen(self._told)
        try:
            while not stop.is_set():
                self._event.clear()
                try:
                    self.look()
                except Exception as exc:
                    log.warning("what is stored cannot be read; everything stays as it was: %s", exc)
                self._event.wait(PERIOD_S)
        finally:
            end()

    def look(self) -> None:
        """Take over what is stored."""
        self._refresh()
        table = self._published()
        if table is not None and table.version > 0:
            self._feed.published(table)

    def wake(self) -> None:
        self._event.set()

    def _told(self) -> None:
        self._event.set()
        self._changed()
