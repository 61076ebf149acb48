"""The data-plane agent of this machine: found again or started, and kept running.

Decides its command line and when it is started anew. Must not know what the agent does. It is a session of its own, so
it outlives this process; a later one finds it by pid and start time.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from amphitrite.controlplane.auth.certificates import Certificates
from amphitrite.controlplane.core.planning.rollout import backoff_s
from amphitrite.controlplane.settings.addresses import url
from amphitrite.controlplane.settings.home import Home
from amphitrite.controlplane.settings.settings import Settings
from amphitrite.controlplane.settings.version import VERSION
from amphitrite.dataplane import orphaned_proxies
from amphitrite.dataplane.machine import processes
from amphitrite.schemas.errors import Error

log = logging.getLogger(__name__)

AGENT_ID = "local"
#: A new agent that lives this long ends a row of quick deaths (seconds).
SETTLED_S = 30.0


def record_file(home: Home) -> Path:
    """Where the agent writes its pid and start time."""
    return home.dataplane / "agent.json"


def command(settings: Settings, certificates: Certificates) -> list[str]:
    """The agent's argv."""
    home = settings.home
    return [
        *(sys.executable, "-m", "amphitrite.dataplane"),
        *("--id", AGENT_ID),
        *("--state", str(home.dataplane)),
        *("--run", str(home.socket(orphaned_proxies.LONGEST_SOCKET_NAME).parent)),
        *("--logs", str(home.logs)),
        *("--control-plane", url(settings.host, settings.port)),
        *("--ca-file", str(certificates.ca_file)),
        *("--token-file", str(settings.credentials / "agent-token")),
        *("--listen", f"{settings.host}:{settings.scoring_port}"),
        *("--certificate", str(certificates.certificate_file)),
        *("--private-key", str(certificates.key_file)),
        *(("--scoring-domain", settings.scoring_domain) if settings.scoring_domain else ()),
    ]


class AgentProcess:
    """``keep`` is called now and then by one thread."""

    def __init__(self, home: Home, argv: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._home, self._argv, self._clock = home, list(argv), clock
        self._child: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._start_due = 0.0
        self._deaths = 0
        self._counted = False  #: whether the child's death is in ``_deaths``

    def alive(self) -> bool:
        """Whether an agent of this home runs, be it our child or one that was there before us."""
        if self._child is not None and self._child.poll() is None:
            return True
        record = processes.read(record_file(self._home))
        return record is not None and processes.alive(record)

    def keep(self) -> None:
        """Start the agent if none runs, after a pause that grows with each quick death. One of another release or
        command line, which an earlier control plane has left behind, is ended first; its proxy goes on."""
        if self._child is None:
            self._end_other()
        if self.alive():
            return
        now = self._clock()
        if self._child is not None and not self._counted:
            quick = now - self._started_at < SETTLED_S
            self._deaths = self._deaths + 1 if quick else 0
            self._start_due = self._started_at + backoff_s(self._deaths)
            self._counted = True
            log.warning("the data-plane agent ended with %s; starting another", self._child.returncode)
        if now < self._start_due:
            return
        self._started_at, self._counted = now, False
        with (self._home.logs / "agent.log").open("ab") as output:
            self._child = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env=_environment(),
            )

    def _end_other(self) -> None:
        path = record_file(self._home)
        record = processes.read(path)
        if record is None or not processes.alive(record) or self._same(path, record):
            return
        log.info("the data-plane agent is of another release; starting another")
        # Not asked to end: it would end the proxy as well. Whatever it was about, the next one finds it and goes on.
        processes.send_signal(record, signal.SIGKILL)
        wait_gone(record, 5.0)

    def _same(self, path: Path, record: processes.ProcessRecord) -> bool:
        try:
            argv = psutil.Process(record.pid).cmdline()
            return argv == self._argv and json.loads(path.read_text(encoding="utf-8")).get("release") == VERSION
        except (psutil.Error, OSError, ValueError):
            return False

    def wait(self) -> None:
        """Until the agent that we started has ended."""
        if self._child is not None:
            self._child.wait()

    def died(self) -> Error | None:
        """What to tell when the agent that we started ended: its last words."""
        if self._child is None or self._child.poll() is None:
            return None
        lines = (self._home.logs / "agent.log").read_text("utf-8", "replace").splitlines()
        last = lines[-1] if lines else "no output"
        return Error(
            "RuntimeUnavailable",
            f"the data-plane agent ended with {self._child.returncode}: {last[:500]}",
            hint="see logs/agent.log and logs/envoy.log, or: ml server logs",
        )


def _environment() -> dict[str, str]:
    """Ours, less what is secret: the agent reads its own token from a file."""
    return {k: v for k, v in os.environ.items() if k not in ("ML_TOKEN", "ML_DATABASE_URL")}


def stop(home: Home, deadline_s: float) -> None:
    """Ask a running agent of ``home`` to drain and end its proxy and itself; kill both past the deadline."""
    record = processes.read(record_file(home))
    if record is not None and processes.send_signal(record, signal.SIGTERM):
        wait_gone(record, deadline_s)
    if record is not None:
        processes.end(record, 5.0)
    record_file(home).unlink(missing_ok=True)
    orphaned_proxies.terminate_all(home.dataplane, 5.0)


def listening(home: Home) -> str | None:
    """``HOST:PORT`` that a running agent of ``home`` serves on, or its proxy, which outlives it; None when neither
    runs."""
    record = processes.read(record_file(home))
    if record is None or not processes.alive(record):
        address = orphaned_proxies.listen_address(home.dataplane)
        return None if address is None else f"{address.host}:{address.port}"
    try:
        argv = psutil.Process(record.pid).cmdline()
    except psutil.Error:
        return None
    return argv[argv.index("--listen") + 1] if "--listen" in argv else None


def wait_gone(record: processes.ProcessRecord, deadline_s: float) -> None:
    """Until that process has ended, at most ``deadline_s``."""
    deadline = time.monotonic() + deadline_s
    while processes.alive(record) and time.monotonic() < deadline:
        time.sleep(0.05)
