"""The process beside each proxy: it follows the control plane's tables and reports.

Decides how the parts are put together, in which order they start and stop, and what ends the agent.
Every part runs in a thread of its own. A part that fails ends the agent, and the agent's parent
starts it again. The proxy process lives on meanwhile, except where the agent is the first process
of a container: nothing outlives that one, so the proxy is stopped gracefully first. Must not know
which proxy it is: see ``amphitrite.dataplane.proxy``.
"""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from amphitrite.dataplane.agent.control_plane_client import (
    deregister,
    follow,
    report,
    report_metrics,
    report_samples,
)
from amphitrite.dataplane.agent.settings import Settings
from amphitrite.dataplane.machine import garbage_collection, open_files, processes
from amphitrite.dataplane.machine.json_log import log
from amphitrite.dataplane.proxy.proxy import AgentCallbacks, GracefulShutdown, ProxyFactory
from amphitrite.dataplane.table import saved_table
from amphitrite.dataplane.table.routing_table import RoutingTable
from amphitrite.dataplane.table.saved_table import SavedTable
from amphitrite.dataplane.table.seed import load_seed, newer
from amphitrite.dataplane.table.text_codec import TableText
from amphitrite.schemas.errors import Error

_MAINTENANCE_INTERVAL_S = 1.0
#: The longest time that requests in flight get when the agent is told to stop.
_GRACE_MAX_S = 180.0
#: How long a report that is on its way may take before the agent deregisters.
_LAST_REPORT_TIMEOUT_S = 2.0


class Agent:
    """``run`` returns after ``stop``, when the proxy has ended, or after a part has failed. Then
    the proxy goes on, unless the agent is the first process of a container. While the proxy is
    being stopped, tables and reports go on."""

    def __init__(self, settings: Settings, make_proxy: ProxyFactory) -> None:
        self._settings = settings
        self._stop = threading.Event()  #: told to end, or a part has failed
        self._ended = threading.Event()  #: the proxy is no longer ours to look after
        self._report_due = threading.Event()
        self._metrics_due = threading.Event()
        self._samples_due = threading.Event()
        self._failed = False
        self._saved, self._seed = _load_tables(settings)
        self._saved_text = TableText()
        due = (self._report_due, self._metrics_due, self._samples_due)
        callbacks = AgentCallbacks(self._start_thread, self._save_table, *(event.set for event in due))
        self._proxy = make_proxy(settings.proxy, callbacks)

    def stop(self) -> None:
        self._stop.set()

    def run(self) -> int:
        """The exit code. Raises Error when the start fails. Then no proxy runs, unless one ran
        before."""
        proxy, saved, seed = self._proxy, self._saved, self._seed
        if saved is None and seed is not None:
            # A new proxy: nothing is in flight on what an earlier table named.
            proxy.prepare(SavedTable(seed, seed.version, 0.0))
        else:
            proxy.prepare(saved)
        current = seed or (saved.table if saved is not None else None)
        # A proxy that may serve by an earlier table gets that one before any other. A new proxy
        # need not wait.
        first = current is None and not proxy.has_predecessor()
        if first:
            self._follow(None)
        try:
            proxy.start(_predecessor_grace_s(saved, seed))
        except Error:
            self._end()
            raise
        if saved is not None and seed is not None:
            proxy.submit(seed)
        if not first:
            self._follow(current)
        reports = self._start_thread("report", self._send_reports)
        self._start_thread("report metrics", self._send_metrics)
        self._start_thread("report samples", self._send_samples)
        while not self._stop.wait(_MAINTENANCE_INTERVAL_S):
            self._maintain()
        if not self._failed or processes.is_init():
            proxy.stop(self._shutdown())
        self._end()
        if not self._failed:
            reports.join(_LAST_REPORT_TIMEOUT_S)
            deregister(self._settings.control_plane, self._settings.proxy.id)
        return 1 if self._failed else 0

    def _shutdown(self) -> GracefulShutdown:
        grace_s = self._settings.grace_s
        if grace_s is None:
            grace_s = min(self._proxy.drain_timeout_s(), _GRACE_MAX_S) or 1.0
        return GracefulShutdown(self._settings.linger_s, grace_s)

    def _end(self) -> None:
        self._stop.set()
        self._ended.set()
        self._report_due.set()
        self._metrics_due.set()
        self._samples_due.set()
        self._proxy.close()

    def _follow(self, current: RoutingTable | None) -> None:
        control_plane, submit = self._settings.control_plane, self._proxy.submit
        self._start_thread("follow", lambda: follow(control_plane, current, submit, self._ended))

    def _maintain(self) -> None:
        try:
            self._proxy.maintain()
        except Error as error:
            log("warning", "maintenance failed", error=error.message)
        except Exception as exc:  # Such as no descriptor left. The next attempt is in a second.
            log("error", "maintenance failed", error=repr(exc))
        if processes.is_init():
            processes.reap_orphans(self._proxy.children())

    def _save_table(self, saved: SavedTable) -> None:
        saved_table.save(self._settings.table_file, saved, self._saved_text)

    def _send_reports(self) -> None:
        proxy, settings = self._proxy, self._settings
        content = lambda: (proxy.progress(), proxy.process())  # noqa: E731
        report(settings.control_plane, settings.proxy.id, content, self._report_due, self._ended)

    def _send_metrics(self) -> None:
        settings = self._settings
        report_metrics(settings.control_plane, settings.proxy.id, self._proxy.metrics, self._metrics_due, self._ended)

    def _send_samples(self) -> None:
        settings, proxy = self._settings, self._proxy
        report_samples(
            settings.control_plane, settings.proxy.id, proxy.samples, proxy.samples_sent, self._samples_due, self._ended
        )

    def _start_thread(self, name: str, part: Callable[[], None]) -> threading.Thread:
        def guarded() -> None:
            try:
                part()
            except Exception as exc:  # The boundary of a thread: nothing above could see it.
                log("error", "a part of the agent failed", part=name, error=repr(exc))
                self._failed = True
                self._stop.set()

        thread = threading.Thread(target=guarded, name=name, daemon=True)
        thread.start()
        return thread


def serve(settings: Settings, make_proxy: ProxyFactory) -> int:
    """Run the agent of ``settings.proxy.state`` until SIGTERM or SIGINT. The exit code.

    Raises Error(Conflict) when another agent runs on that directory, and what ``Agent`` raises.
    """
    # Sockets and files are for the owner alone. The kubelet may have made the directory with
    # another mode.
    os.umask(0o077)
    garbage_collection.limit_pauses()
    open_files.raise_limit()  # Envoy inherits it.
    threading.excepthook = _log_unhandled
    proxy = settings.proxy
    for directory in filter(None, (proxy.state, proxy.run, proxy.logs)):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if proxy.run.stat().st_uid == os.getuid():
        proxy.run.chmod(0o700)
    with _exclusive_lock(settings.lock_file):
        agent = Agent(settings, make_proxy)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: agent.stop())
        processes.write(settings.agent_record, processes.own(), release=version("amphitrite"))
        try:
            return agent.run()
        finally:
            settings.agent_record.unlink(missing_ok=True)


def _log_unhandled(arguments: threading.ExceptHookArgs) -> None:
    name = arguments.thread.name if arguments.thread is not None else "?"
    log("error", "a thread ended", thread=name, error=repr(arguments.exc_value))


def _predecessor_grace_s(saved: SavedTable | None, seed: RoutingTable | None) -> float:
    """The longest time that a table which an earlier proxy may have gives a request in flight."""
    tables = [t for t in (saved.table if saved else None, seed) if t is not None]
    longest = max(
        [1.0, saved.drain_timeout_s if saved else 0.0, *(c.drain_timeout_s for table in tables for c in table.clusters)]
    )
    return min(longest, _GRACE_MAX_S)


def _load_tables(settings: Settings) -> tuple[SavedTable | None, RoutingTable | None]:
    """The saved table, and the seed where it is newer. A file that cannot be read is logged and
    ignored."""
    saved: SavedTable | None = None
    seed: RoutingTable | None = None
    try:
        saved = saved_table.load(settings.table_file)
    except Error as error:
        log("error", "starting without the saved table", error=error.message)
    try:
        seed = load_seed(settings.seed) if settings.seed is not None else None
    except Error as error:
        log("error", "starting without the seed", error=error.message)
    return saved, newer(seed, saved.table if saved is not None else None)


@contextmanager
def _exclusive_lock(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise Error("Conflict", f"another agent runs on {path.parent}", target=str(path.parent)) from exc
        yield
    finally:
        os.close(descriptor)
