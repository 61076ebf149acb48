"""The data-plane agent of this machine: adopted or started, and kept running.

Decides its command line and when it is restarted. Must not know what the agent does. The agent is a
session of its own, so it outlives this process; a later one finds it by pid and start time.
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
#: An agent that has run this many seconds ends a row of early exits.
STABLE_S = 30.0


def record_file(home: Home) -> Path:
    """The file where the agent writes its pid and start time."""
    return home.dataplane / "agent.json"


def command(settings: Settings, certificates: Certificates) -> list[str]:
    """The agent's argv."""
    home = settings.home
    return [
        *(sys.executable, "-m", "amphitrite.dataplane"),
        *("--id", AGENT_ID),
        *("--state", str(home.dataplane)),
        *("--run", str(home.socket_directory(orphaned_proxies.LONGEST_SOCKET_NAME))),
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
    """One thread calls ``ensure_running`` periodically."""

    def __init__(self, home: Home, argv: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._home, self._argv, self._clock = home, list(argv), clock
        self._child: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._start_due = 0.0
        self._deaths = 0
        self._counted = False

    def alive(self) -> bool:
        """Whether an agent of this home runs, as our child or from before."""
        if self._child is not None and self._child.poll() is None:
            return True
        record = processes.read(record_file(self._home))
        return record is not None and processes.alive(record)

    def ensure_running(self) -> None:
        """Starts the agent if none runs, after a pause that grows with each early exit.

        First ends an agent of another release or command line; its proxy keeps running.
        """
        if self._child is None:
            self._end_outdated()
        if self.alive():
            return
        now = self._clock()
        if self._child is not None and not self._counted:
            quick = now - self._started_at < STABLE_S
            self._deaths = self._deaths + 1 if quick else 0
            self._start_due = self._started_at + backoff_s(self._deaths)
            self._counted = True
            log.warning("the data-plane agent exited with code %s; starting a new one", self._child.returncode)
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

    def _end_outdated(self) -> None:
        path = record_file(self._home)
        record = processes.read(path)
        if record is None or not processes.alive(record) or self._same(path, record):
            return
        log.info("the data-plane agent is of another release; starting a new one")
        # Not SIGTERM, which would end the proxy too. The new agent continues from the old one's
        # state.
        processes.send_signal(record, signal.SIGKILL)
        wait_for_exit(record, 5.0)

    def _same(self, path: Path, record: processes.ProcessRecord) -> bool:
        try:
            argv = psutil.Process(record.pid).cmdline()
            return argv == self._argv and json.loads(path.read_text(encoding="utf-8")).get("release") == VERSION
        except (psutil.Error, OSError, ValueError):
            return False

    def wait(self) -> None:
        """Waits until the agent that this process started has exited."""
        if self._child is not None:
            self._child.wait()

    def exit_error(self) -> Error | None:
        """The error with the last line of its log if the agent that this process started has
        exited."""
        if self._child is None or self._child.poll() is None:
            return None
        lines = (self._home.logs / "agent.log").read_text("utf-8", "replace").splitlines()
        last = lines[-1] if lines else "no output"
        return Error(
            "RuntimeUnavailable",
            f"the data-plane agent exited with code {self._child.returncode}: {last[:500]}",
            hint="see logs/agent.log and logs/envoy.log, or run `ml server logs`",
        )


def _environment() -> dict[str, str]:
    """Our environment without secrets: the agent reads its token from a file."""
    return {k: v for k, v in os.environ.items() if k not in ("ML_TOKEN", "ML_DATABASE_URL")}


def stop(home: Home, deadline_s: float) -> None:
    """Asks the agent of ``home`` to drain and end its proxy and itself; kills both after
    ``deadline_s``."""
    record = processes.read(record_file(home))
    if record is not None and processes.send_signal(record, signal.SIGTERM):
        wait_for_exit(record, deadline_s)
    if record is not None:
        processes.end(record, 5.0)
    record_file(home).unlink(missing_ok=True)
    orphaned_proxies.terminate_all(home.dataplane, 5.0)


def listening(home: Home) -> str | None:
    """``HOST:PORT`` that the living agent of ``home``, or its proxy, serves on; None if neither
    lives."""
    record = processes.read(record_file(home))
    if record is None or not processes.alive(record):
        address = orphaned_proxies.listen_address(home.dataplane)
        return None if address is None else f"{address.host}:{address.port}"
    try:
        argv = psutil.Process(record.pid).cmdline()
    except psutil.Error:
        return None
    return argv[argv.index("--listen") + 1] if "--listen" in argv else None


def wait_for_exit(record: processes.ProcessRecord, deadline_s: float) -> None:
    """Waits until that process has exited, at most ``deadline_s``."""
    deadline = time.monotonic() + deadline_s
    while processes.alive(record) and time.monotonic() < deadline:
        time.sleep(0.05)
