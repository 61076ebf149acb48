"""An agent with its Envoy and a fake control plane, as real processes in a directory of their
own."""

from __future__ import annotations

import signal
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

import httpx
import pytest

from amphitrite.dataplane.envoy.process.hot_restart import HotRestart, RunningEnvoy, find_running
from amphitrite.dataplane.machine import processes
from amphitrite.dataplane.machine.processes import ProcessRecord
from amphitrite.dataplane.table.routing_table import Address, Cluster, HealthCheck, Route, RoutingTable, Secret, Target

from .. import tiers
from ..ports import free_port
from ..waiting import wait_until
from .fake_control_plane import TOKEN, FakeControlPlane
from .upstream import Upstream

KEY = "primary-key"
BEARER = {"authorization": f"Bearer {KEY}"}
INFER = "/endpoints/images/v2/models/m/infer"
#: Soon, and patient: the instances of tests are threads of one busy process.
CHECK = HealthCheck(interval_s=0.5, timeout_s=10.0)
#: For tests that kill Envoy. Python does not close a connection that is reset between its start and
#: its handshake (CPython's SSLSocket._create), and warns of it.
RESET_CONNECTIONS = pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
#: Seconds that a request may take, where a test does not wait for it to take too long.
PATIENCE_S = 30.0


def eventually(condition: Callable[[], bool]) -> None:
    """Returns as soon as ``condition`` holds, or 20 ms later: some wait for what does not last."""
    wait_until(condition, "what the test waits for", pause_at_most_s=0.02)


def cluster(name: str, upstreams: Iterable[Upstream], max_requests: int = 64, drain_s: float = 5.0) -> Cluster:
    addresses = tuple(sorted(Address("127.0.0.1", u.port) for u in upstreams))
    return Cluster(name, addresses, max_requests, drain_s, CHECK)


def table(
    version: int,
    clusters: Iterable[Cluster],
    split: Iterable[tuple[str, int]],
    name: str = "images",
    *,
    retry_lost: bool = False,
) -> RoutingTable:
    """One route whose targets are the clusters, each under its own name."""
    known = tuple(sorted(clusters, key=lambda c: c.name))
    targets = tuple(Target(c.name, c.name, PATIENCE_S, "/v2/models/m/infer", retry_lost=retry_lost) for c in known)
    return RoutingTable(version, (Route(name, (Secret(KEY),), targets, tuple(split)),), known)


class RunningAgent:
    """Start with ``start``, end with ``close``, which leaves no process behind."""

    def __init__(self, directory: Path, certificate: Path, private_key: Path) -> None:
        self.state = directory / "state"
        self.logs = directory / "logs"
        # A UNIX socket's path must be short, which pytest's directories are not.
        self._run = tempfile.TemporaryDirectory(prefix="amphitrite-")
        self.certificate, self.private_key = certificate, private_key
        self.ca_file = certificate  #: who the agent thinks signs for the control plane
        self.host = "127.0.0.1"  #: where its Envoy listens
        self.options: tuple[str, ...] = ()  #: more words for its command line
        self.program: tuple[str, ...] = (sys.executable, "-m", "amphitrite.dataplane")
        self.control_plane = FakeControlPlane(certificate, private_key)
        self.control_plane.start()
        self.port = free_port()
        self._token = directory / "token"
        self._token.write_text(TOKEN)
        self._process: subprocess.Popen[bytes] | None = None
        self.client = httpx.Client(
            base_url=f"https://127.0.0.1:{self.port}",
            verify=ssl.create_default_context(cafile=str(certificate)),
            timeout=30,
            trust_env=False,
        )

    @property
    def run(self) -> Path:
        return Path(self._run.name)

    def start(self, stdout: IO[bytes] | None = None, stderr: IO[bytes] | None = None) -> subprocess.Popen[bytes]:
        """Its output goes to ``agent.log`` unless both streams are given."""
        tiers.needs("serving")
        command = [
            *(*self.program, "--id", "test"),
            *("--state", str(self.state), "--run", str(self.run), "--logs", str(self.logs)),
            *("--control-plane", self.control_plane.url, "--ca-file", str(self.ca_file)),
            *("--token-file", str(self._token), "--listen", f"{self.host}:{self.port}"),
            *("--certificate", str(self.certificate), "--private-key", str(self.private_key)),
            *self.options,
        ]
        if stdout is not None and stderr is not None:
            self._process = subprocess.Popen(command, stdout=stdout, stderr=stderr, start_new_session=True)
            return self._process
        self.logs.mkdir(parents=True, exist_ok=True)
        with open(self.logs / "agent.log", "ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
        return self._process

    def health(self) -> int | None:
        """The status of ``/healthz``, without a key; None while nothing listens."""
        try:
            return self.client.get("/healthz").status_code
        except httpx.TransportError:
            return None

    def put_in_force(self, wanted: RoutingTable) -> None:
        self.control_plane.publish(wanted)
        self.control_plane.wait_for(acknowledged_version=wanted.version)

    def envoy(self) -> ProcessRecord:
        record = processes.read(self.state / "envoy.json")
        assert record is not None
        return record

    def envoys(self) -> tuple[RunningEnvoy, ...]:
        """All that run, from the oldest to the newest."""
        return find_running(self.state / "bootstrap.json", self.state / "envoy.json")

    def outdate(self) -> None:
        """Let Envoy's record say that it was started with other settings."""
        processes.write(self.state / "envoy.json", self.envoy(), digest="other")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """``kill -9`` of the agent alone."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def terminate(self) -> int:
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(30)

    def presented_certificate(self) -> str | None:
        """PEM text of what a client is shown now; None while nothing listens."""
        try:
            return ssl.get_server_certificate(("127.0.0.1", self.port))
        except OSError:
            return None

    def log(self) -> str:
        return (self.logs / "agent.log").read_text()

    def close(self) -> None:
        self.client.close()
        self.control_plane.stop()
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        left = self.envoys()
        for one in left:
            processes.send_signal(one.process, signal.SIGKILL)
        eventually(lambda: not any(processes.alive(one.process) for one in left))
        HotRestart.of(self.state, self.run).remove_files()
        self._run.cleanup()


def serves(agent: RunningAgent, **headers: str) -> bool:
    """Whether a scoring request is answered 200 now."""
    try:
        return agent.client.post(INFER, headers={**BEARER, **headers}, json={}).status_code == 200
    except httpx.TransportError:
        return False
