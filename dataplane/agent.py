"""The process beside each Envoy.

Decides how the parts are put together, in which order they start and stop, and what ends the agent. Every part runs
in a thread of its own; any of them failing unexpectedly ends the agent, which its parent starts again; Envoy lives on.
"""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from amphitrite.dataplane import processes, table_file
from amphitrite.dataplane.admin import Admin
from amphitrite.dataplane.ads import AdsServer
from amphitrite.dataplane.apply import Applier
from amphitrite.dataplane.certificates import CertificateFiles
from amphitrite.dataplane.delta import Refusal
from amphitrite.dataplane.envoy.binary import find_envoy
from amphitrite.dataplane.envoy.bootstrap import ProxySettings, bootstrap
from amphitrite.dataplane.envoy_process import EnvoyProcess, Launch, workers
from amphitrite.dataplane.follow import follow, report
from amphitrite.dataplane.log import log
from amphitrite.dataplane.rotation import rotate
from amphitrite.dataplane.settings import Settings
from amphitrite.schemas.errors import Error

_HOUSEKEEPING_S = 1.0
#: Nobody waits longer than this for requests in flight when the agent is told to stop.
_GRACE_MAX_S = 180.0


class Agent:
    """``run`` returns when ``stop`` was called (Envoy is gone then) or a part failed (Envoy is left running)."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stop = threading.Event()
        self._report = threading.Event()
        self._failed = False
        self._admin = Admin(settings.admin_socket)
        self._envoy = EnvoyProcess(_launch(settings), self._admin)
        self._certificates = CertificateFiles(settings.certificate, settings.private_key)
        changed = threading.Condition()
        self._ads = AdsServer(settings.agent_socket, changed, self._refused)
        self._applier = Applier(
            self._ads,
            self._admin,
            changed,
            save=lambda saved: table_file.save(settings.table_file, saved),
            on_progress=self._report.set,
        )

    def stop(self) -> None:
        self._stop.set()

    def run(self) -> int:
        """The exit code. Raises Error when the start fails; Envoy does not run then, unless it ran before."""
        self._follow_certificate()
        saved = _load(self._settings.table_file)
        if saved is not None:
            self._applier.restore(saved)
        self._ads.start()
        self._thread("apply", self._applier.run)
        try:
            adopted = self._envoy.begin()
        except Error:
            self._end()
            raise
        if saved is None and not adopted:
            self._applier.begin_empty()
        self._thread("watch", self._envoy.watch)
        self._thread("follow", lambda: follow(self._settings.control_plane, self._applier.submit, self._stop))
        self._thread("report", self._send_reports)
        while not self._stop.wait(_HOUSEKEEPING_S):
            self._keep_house()
        if not self._failed:
            self._envoy.stop(min(self._applier.drain_timeout_s, _GRACE_MAX_S) or 1.0)
            self._settings.admin_socket.unlink(missing_ok=True)
        self._end()
        return 1 if self._failed else 0

    def _end(self) -> None:
        self._stop.set()
        self._applier.stop()
        self._ads.stop()
        self._admin.close()

    def _refused(self, refusal: Refusal) -> None:
        self._applier.refused(refusal)

    def _follow_certificate(self) -> None:
        secrets = self._certificates.changed()
        if secrets is not None:
            self._applier.set_certificate(secrets)

    def _keep_house(self) -> None:
        try:
            self._follow_certificate()
            rotate((self._settings.access_log, self._settings.envoy_log), self._admin.reopen_logs)
        except Error as error:
            log("warning", "housekeeping", error=error.message)

    def _send_reports(self) -> None:
        report(self._settings.control_plane, self._settings.id, self._content, self._report, self._stop)

    def _content(self) -> dict[str, Any]:
        progress = self._applier.progress()
        return {
            "acknowledged_version": progress.acknowledged_version,
            "drained_version": progress.drained_version,
            "rejected_version": progress.rejected_version,
            "error": progress.error,
            "envoy": {"pid": self._envoy.pid, "version": self._envoy.version},
        }

    def _thread(self, name: str, part: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                part()
            except Exception as exc:  # the boundary of a thread: nothing above could see it
                log("error", "a part of the agent failed", part=name, error=repr(exc))
                self._failed = True
                self._stop.set()

        threading.Thread(target=guarded, name=name, daemon=True).start()


def serve(settings: Settings) -> int:
    """Be the agent of ``settings.state`` until SIGTERM or SIGINT. Raises Error when there is one already."""
    for directory in (settings.state, settings.run, settings.logs):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    settings.run.chmod(0o700)
    with _only_one(settings.lock_file):
        agent = Agent(settings)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: agent.stop())
        processes.write(settings.agent_record, processes.own())
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
    )
    return Launch(
        executable=find_envoy(),
        bootstrap=bootstrap(proxy),
        bootstrap_file=settings.bootstrap_file,
        record=settings.envoy_record,
        log_file=settings.envoy_log,
        listen=settings.listen,
        workers=workers(),
    )


def _load(path: Path) -> table_file.SavedTable | None:
    try:
        return table_file.load(path)
    except Error as error:
        log("error", "starting without the saved table", error=error.message)
        return None


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
