"""The process beside each Envoy.

Decides how the parts are put together, in which order they start and stop, and what ends the agent. Every part runs
in a thread of its own; any of them failing unexpectedly ends the agent, which its parent starts again; Envoy lives on,
except in a container whose first process the agent is: nothing outlives that, so Envoy is ended gracefully first.
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
from typing import Any

from amphitrite.dataplane.agent.control_plane_client import farewell, follow, report, report_metrics
from amphitrite.dataplane.agent.settings import Settings
from amphitrite.dataplane.envoy.process.admin_client import Admin
from amphitrite.dataplane.envoy.process.binary import find_envoy, version_text
from amphitrite.dataplane.envoy.process.graceful_shutdown import Departure
from amphitrite.dataplane.envoy.process.hot_restart import HotRestart
from amphitrite.dataplane.envoy.process.launch_command import Launch
from amphitrite.dataplane.envoy.process.log_output import FileOutput, StreamOutput
from amphitrite.dataplane.envoy.process.process import EnvoyProcess
from amphitrite.dataplane.envoy.translate.bootstrap import ProxySettings, bootstrap
from amphitrite.dataplane.envoy.xds.ads_server import AdsServer
from amphitrite.dataplane.envoy.xds.certificate_files import CertificateFiles
from amphitrite.dataplane.envoy.xds.delta_stream import Refusal
from amphitrite.dataplane.envoy.xds.metrics_collector import Gatherer
from amphitrite.dataplane.envoy.xds.table_updates import Applier
from amphitrite.dataplane.machine import cgroup_limits, garbage_collection, processes
from amphitrite.dataplane.machine.json_log import log
from amphitrite.dataplane.machine.log_rotation import rotate
from amphitrite.dataplane.table import saved_table
from amphitrite.dataplane.table.routing_table import RoutingTable
from amphitrite.dataplane.table.saved_table import SavedTable
from amphitrite.dataplane.table.seed import load_seed, newer
from amphitrite.dataplane.table.text_codec import TableText
from amphitrite.schemas.errors import Error

_HOUSEKEEPING_S = 1.0
#: Nobody waits longer than this for requests in flight when the agent is told to stop.
_GRACE_MAX_S = 180.0
#: How long a report that is on its way may take before the farewell goes out.
_LAST_REPORT_WITHIN_S = 2.0


class Agent:
    """``run`` returns when ``stop`` was called (Envoy is gone then) or a part failed (Envoy is left running, unless the
    agent is the first process of a container). While Envoy is being ended, tables and reports go on."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stop = threading.Event()  #: told to end, or a part has failed
        self._ended = threading.Event()  #: Envoy is no longer ours to look after
        self._report = threading.Event()
        self._failed = False
        self._admin = Admin(settings.admin_socket)
        self._saved, self._seed = _load(settings)
        self._certificates = CertificateFiles(settings.certificate, settings.private_key)
        changed = threading.Condition()
        self._ads = AdsServer(settings.agent_socket, changed, self._refused)
        self._envoy = EnvoyProcess(_launch(settings), self._admin, self._ads.only, _grace_s(self._saved, self._seed))
        saved_text = TableText()
        self._applier = Applier(
            self._ads,
            self._admin,
            changed,
            save=lambda saved: saved_table.save(settings.table_file, saved, saved_text),
            on_progress=self._progressed,
            former_busy=self._envoy.former_busy,
            scoring_domain=settings.scoring_domain,
        )
        self._gatherer = Gatherer(
            settings.admin_socket,
            lambda: processes.read(settings.envoy_record),
            lambda: self._applier.table,
            settings.metrics_file,
            settings.metrics_every_s,
        )

    def stop(self) -> None:
        self._stop.set()

    def run(self) -> int:
        """The exit code. Raises Error when the start fails; Envoy does not run then, unless it ran before."""
        self._follow_certificate()
        saved, seed = self._saved, self._seed
        if saved is not None:
            self._applier.restore(saved)
        elif seed is not None:
            # A new proxy: nothing is in flight on what an earlier table named.
            self._applier.restore(SavedTable(seed, seed.version, 0.0))
        self._ads.start()
        self._thread("apply", self._applier.run)
        have = seed or (saved.table if saved is not None else None)
        # An Envoy that may serve by an earlier table gets that again before any other; a new one need not wait.
        first = have is None and processes.read(self._settings.envoy_record) is None
        if first:
            self._follow(None)
        try:
            self._envoy.begin()
        except Error:
            self._end()
            raise
        if saved is not None and seed is not None:
            self._applier.submit(seed)
        self._thread("watch", self._envoy.watch)
        if not first:
            self._follow(have)
        reports = self._thread("report", self._send_reports)
        numbers = self._thread("metrics", lambda: self._gatherer.run(self._stop, self._ended))
        self._thread("report metrics", self._send_metrics)
        while not self._stop.wait(_HOUSEKEEPING_S):
            self._keep_house()
        if not self._failed or processes.first():
            self._envoy.stop(self._departure())
            self._settings.admin_socket.unlink(missing_ok=True)
        self._end()
        numbers.join(_LAST_REPORT_WITHIN_S)
        if not self._failed:
            reports.join(_LAST_REPORT_WITHIN_S)
            farewell(self._settings.control_plane, self._settings.id)
        return 1 if self._failed else 0

    def _departure(self) -> Departure:
        grace_s = self._settings.grace_s
        if grace_s is None:
            grace_s = min(self._applier.drain_timeout_s, _GRACE_MAX_S) or 1.0
        return Departure(self._settings.linger_s, grace_s)

    def _end(self) -> None:
        self._stop.set()
        self._ended.set()
        self._report.set()
        self._gatherer.changed.set()
        self._applier.stop()
        self._ads.stop()
        self._admin.close()

    def _refused(self, refusal: Refusal) -> None:
        self._applier.refused(refusal)

    def _follow(self, have: RoutingTable | None) -> None:
        self._thread("follow", lambda: follow(self._settings.control_plane, have, self._applier.submit, self._ended))

    def _follow_certificate(self) -> None:
        secrets = self._certificates.changed()
        if secrets is not None:
            self._applier.set_certificate(secrets)

    def _keep_house(self) -> None:
        try:
            self._follow_certificate()
            files = (self._settings.access_log, self._settings.envoy_log)
            rotate([path for path in files if path is not None], self._admin.reopen_logs)
        except Error as error:
            log("warning", "housekeeping", error=error.message)
        if processes.first():
            processes.reap_orphans(self._envoy.children)

    def _progressed(self) -> None:
        """A proxy whose very first table Envoy refuses has nothing to serve by."""
        progress = self._applier.progress()
        self._envoy.fit(progress.acknowledged_version > 0 or progress.rejected_version is None)
        self._report.set()

    def _send_reports(self) -> None:
        report(self._settings.control_plane, self._settings.id, self._content, self._report, self._ended)

    def _send_metrics(self) -> None:
        gatherer = self._gatherer
        report_metrics(self._settings.control_plane, self._settings.id, gatherer.content, gatherer.changed, self._ended)

    def _content(self) -> dict[str, Any]:
        progress = self._applier.progress()
        return {
            "acknowledged_version": progress.acknowledged_version,
            "drained_version": progress.drained_version,
            "rejected_version": progress.rejected_version,
            "error": progress.error,
            "envoy": {"pid": self._envoy.pid, "version": self._envoy.version},
        }

    def _thread(self, name: str, part: Callable[[], None]) -> threading.Thread:
        def guarded() -> None:
            try:
                part()
            except Exception as exc:  # the boundary of a thread: nothing above could see it
                log("error", "a part of the agent failed", part=name, error=repr(exc))
                self._failed = True
                self._stop.set()

        thread = threading.Thread(target=guarded, name=name, daemon=True)
        thread.start()
        return thread


def serve(settings: Settings) -> int:
    """Be the agent of ``settings.state`` until SIGTERM or SIGINT. Raises Error when there is one already."""
    # Sockets and files are for the owner alone, also in a directory that the kubelet made, whose mode is not ours.
    os.umask(0o077)
    garbage_collection.keep_short()
    for directory in filter(None, (settings.state, settings.run, settings.logs)):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if settings.run.stat().st_uid == os.getuid():
        settings.run.chmod(0o700)
    with _only_one(settings.lock_file):
        agent = Agent(settings)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: agent.stop())
        processes.write(settings.agent_record, processes.own(), release=version("amphitrite"))
        try:
            return agent.run()
        finally:
            settings.agent_record.unlink(missing_ok=True)


def _launch(settings: Settings) -> Launch:
    proxy = ProxySettings(
        id=settings.id,
        listen=settings.listen,
        agent_socket=settings.agent_socket,
        admin_socket=settings.admin_socket,
        access_log=settings.access_log,
        metrics_every_s=settings.metrics_every_s,
        # Elsewhere the control group may be shared with anything.
        heap_bytes=cgroup_limits.heap_bytes() if processes.first() else None,
        scoring_domain=settings.scoring_domain,
    )
    executable = find_envoy()
    return Launch(
        executable=executable,
        version=version_text(executable),
        bootstrap=bootstrap(proxy),
        bootstrap_file=settings.bootstrap_file,
        record=settings.envoy_record,
        output=StreamOutput() if settings.envoy_log is None else FileOutput(settings.envoy_log),
        listen=settings.listen,
        workers=settings.concurrency or cgroup_limits.workers(),
        hot_restart=HotRestart.of(settings.state, settings.run) if HotRestart.possible() else None,
    )


def _grace_s(saved: SavedTable | None, seed: RoutingTable | None) -> float:
    """The longest that the tables which an earlier proxy may have give a request in flight."""
    tables = [t for t in (saved.table if saved else None, seed) if t is not None]
    longest = max(
        [1.0, saved.drain_timeout_s if saved else 0.0, *(c.drain_timeout_s for table in tables for c in table.clusters)]
    )
    return min(longest, _GRACE_MAX_S)


def _load(settings: Settings) -> tuple[SavedTable | None, RoutingTable | None]:
    """The saved table, and the seed when it is newer. One that cannot be read is logged, and as good as none."""
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
def _only_one(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise Error("Conflict", f"another agent runs on {path.parent}", target=str(path.parent)) from exc
        yield
    finally:
        os.close(descriptor)
