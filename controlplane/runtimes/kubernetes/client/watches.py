"""Following one kind of object: list, then watch from there, and start again when the watch breaks.

Decides when to list again and how long to wait before. Must not know what the objects are for.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from amphitrite.controlplane.core.planning.rollout import backoff_s
from amphitrite.controlplane.runtimes.kubernetes.client.api_client import Cluster, Stream
from amphitrite.schemas.errors import Error

log = logging.getLogger(__name__)

#: Longest pause between two attempts, in seconds, so that a cluster that is back is noticed soon.
PAUSE_MAX_S = 8.0
_PAGE = 500


class Watch:
    """``listed`` gets all objects and their version; ``changed`` gets each later change as
    (``ADDED``, ``MODIFIED`` or ``DELETED``, object).

    Both run in the watch's thread. ``problem``: why the watch is interrupted now, None if it is
    not.
    """

    def __init__(
        self,
        cluster: Cluster,
        path: str,
        query: Mapping[str, str],
        listed: Callable[[Iterable[dict[str, Any]], str], None],
        changed: Callable[[str, dict[str, Any]], None],
    ) -> None:
        self._cluster, self._path, self._query = cluster, path, dict(query)
        self._listed, self._changed = listed, changed
        self._stop = threading.Event()
        self._stream: Stream | None = None
        self.problem: Error | None = None
        self._thread = threading.Thread(target=self._run, name=f"watch {path.rpartition('/')[2]}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if (stream := self._stream) is not None:
            with contextlib.suppress(Exception):
                stream.close()
        self._thread.join(5.0)

    def _run(self) -> None:
        failures, version = 0, ""
        while not self._stop.is_set():
            try:
                if not version:
                    version = self._list()
                    self.problem, failures = None, 0
                version = self._watch(version)
            except Exception as exc:
                if self._stop.is_set():
                    return
                error = exc if isinstance(exc, Error) else _unexpected(self._path, exc)
                if error.code == "ResourceNotFound" and version:
                    log.info("the cluster has compacted the history of %s; listing again", self._path)
                    version = ""
                    continue
                failures += 1
                version = ""
                if self.problem is None or self.problem.message != error.message:
                    log.warning("watch of %s: %s", self._path, error.message)
                self.problem = error
                self._stop.wait(min(backoff_s(failures), PAUSE_MAX_S))

    def _list(self) -> str:
        """Lists all objects, page by page. Returns the version to watch from."""
        items: list[dict[str, Any]] = []
        query: dict[str, Any] = {**self._query, "limit": _PAGE}
        while True:
            page = self._cluster.get(self._path, **query)
            items += page.get("items") or []
            token = page["metadata"].get("continue")
            if not token:
                break
            query["continue"] = token
        listed_at = str(page["metadata"]["resourceVersion"])
        self._listed(items, listed_at)
        return listed_at

    def _watch(self, version: str) -> str:
        """Passes on changes after ``version`` until the API server ends the watch. Returns the
        version to continue from."""
        self._stream = self._cluster.watch(self._path, **self._query, resourceVersion=version)
        if self._stop.is_set():
            self._stream.close()
        self.problem = None
        for kind, obj in self._stream:
            version = str(obj["metadata"]["resourceVersion"])
            if kind != "BOOKMARK":
                self._changed(kind, obj)
        return version


def _unexpected(path: str, exc: Exception) -> Error:
    """An object that is not as expected, or a fault of ours, interrupts the watch. If it ended the
    thread, the objects would be out of date unseen."""
    log.error("the watch of %s failed", path, exc_info=exc)
    return Error("KubernetesUnaccessible", f"the watch of {path} failed: {type(exc).__name__}: {exc}")
