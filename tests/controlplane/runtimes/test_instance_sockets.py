"""Who can reach an instance, and who is taken for it: only its owner, and only itself."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from amphitrite.controlplane.core.desired.resources import Probe
from amphitrite.controlplane.runtimes.local import (
    instance_logs,
    instance_processes,
    instance_records,
    listeners,
    socket_directories,
)
from amphitrite.controlplane.runtimes.local.instance_records import InstanceRecord
from amphitrite.controlplane.runtimes.local.local_runtime import stop_all
from amphitrite.controlplane.runtimes.local.supervision import Supervision
from amphitrite.controlplane.runtimes.runtime import LogQuery
from amphitrite.controlplane.settings.home import Home
from amphitrite.dataplane.machine.processes import ProcessRecord
from amphitrite.dataplane.table.routing_table import Address, SocketAddress
from amphitrite.dataplane.triton import backend_directory, command_line, installation
from amphitrite.dataplane.triton.command_line import LONGEST_SOCKET_NAME, Options

from ...ports import free_port
from ...waiting import wait_until
from .runtime_subjects import PROBE, Local, one, workload

SPEC = workload()
ID = f"{SPEC.name}-0-0"
#: So many that no test waits for them.
PATIENT = Probe(initial_delay=0, period=1, timeout=2, success_threshold=1, failure_threshold=1000)
NOBODY = 65534

#: Answers each GET with 200 on the socket ``http``, and listens on the one for gRPC.
SERVER = """
import http.server, socket, socketserver, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'{"version": "2"}'
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *about): pass
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer): pass
by_grpc = socket.socket(socket.AF_UNIX); by_grpc.bind(sys.argv[1] + "/grpc:8001"); by_grpc.listen()
Server(sys.argv[1] + "/http", Handler).serve_forever()
"""
SLEEPER = "import time; time.sleep(600)"


class Impostor:
    """Another process's server, as far as the kernel knows: it answers everything with 200."""

    def __init__(self, where: str | int) -> None:
        family = socket.AF_UNIX if isinstance(where, str) else socket.AF_INET
        self._socket = socket.socket(family)
        self._socket.bind(where if isinstance(where, str) else ("127.0.0.1", where))
        self._socket.listen()
        self.connections = 0
        self.requests: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.connections += 1
                with connection, contextlib.suppress(OSError):
                    while asked := connection.recv(65536):
                        self.requests.append(asked)
                        connection.sendall(b'HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{"version": "2"}')

    def __enter__(self) -> Impostor:
        return self

    def __exit__(self, *about: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


class Instance:
    """A process with a record, and a directory for its sockets."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root / "home")
        self.home.create()
        self.directory = self.home.instances / "one"
        self.directory.mkdir()
        self.sockets = socket_directories.create(self.home)
        self.supervised: Supervision | None = None

    def spawn(self, program: str) -> ProcessRecord:
        marker = {instance_processes.MARKER: instance_processes.marker(self.home.root, "one")}
        log = instance_logs.open_for_append(self.directory)
        argv = [sys.executable, "-c", program, str(self.sockets)]
        try:
            return instance_processes.spawn(argv, os.environ | marker, self.directory, log)
        finally:
            os.close(log)

    def supervise(self, process: ProcessRecord, probe: Probe = PROBE, port: int | None = None) -> Supervision:
        sockets = str(self.sockets) if port is None else None
        record = InstanceRecord("one", SPEC, 0, 0, probe, probe, time.time(), process=process, sockets=sockets)
        record = replace(record, port=port or 0)

        def launch(record: InstanceRecord) -> InstanceRecord:
            raise AssertionError("nothing starts again here")

        self.supervised = Supervision(self.home.root, self.directory, record, launch, lambda: None)
        return self.supervised

    def close(self) -> None:
        if self.supervised is not None:
            self.supervised.stop(0)
            wait_until(lambda: self.supervised is None or self.supervised.record.phase == "exited", "the end")
            self.supervised.close()
        instance_processes.kill_all(instance_processes.marker(self.home.root, "one"))
        socket_directories.remove_all(self.home)


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Instance]:
    made = Instance(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("by", ["sockets", "port"])
def test_whoever_answers_for_an_instance_that_still_loads_is_not_taken_for_it(instance: Instance, by: str) -> None:
    process = instance.spawn(SLEEPER)
    port = free_port() if by == "port" else None
    place = port or str(instance.sockets / "http")
    with Impostor(place) as impostor:
        supervised = instance.supervise(process, port=port)
        wait_until(lambda: impostor.connections > 5, "probes have met the impostor")
        assert supervised.record.phase == "starting"
    assert impostor.requests == []


@pytest.mark.parametrize("name", ["http", LONGEST_SOCKET_NAME])
def test_an_instance_whose_place_is_taken_gets_no_requests_at_once(
    instance: Instance, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    supervised = instance.supervise(instance.spawn(SERVER), PATIENT)
    wait_until(lambda: supervised.record.phase == "ready", "the instance is ready")
    path, aside = instance.sockets / name, instance.sockets / "aside"
    path.rename(aside)
    with Impostor(str(path)):
        wait_until(lambda: supervised.record.phase == "unready", "the impostor is noticed")
        assert "another process listens in place of one" in caplog.text
    aside.replace(path)
    wait_until(lambda: supervised.record.phase == "ready", "the instance itself listens again")


def test_a_process_below_the_instances_is_the_instance(instance: Instance) -> None:
    """As where a launcher that isolates the server is the process that was started."""
    below = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SERVER!r}, sys.argv[1]])"
    supervised = instance.supervise(instance.spawn(below))
    wait_until(lambda: supervised.record.phase == "ready", "the instance is ready")


def test_a_listener_that_has_ended_or_is_not_visible_is_nobodys(instance: Instance) -> None:
    process = instance.spawn(SLEEPER)
    path = str(instance.sockets / "http")
    program = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()"
    program += "\nimport os; os.dup2(s.fileno(), 0); os.fork() and os._exit(0)\nimport time; time.sleep(600)"
    subprocess.run([sys.executable, "-c", program, path], check=True, env={instance_processes.MARKER: "orphan"})
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            assert not listeners.owns_peer(process, connection)
    finally:
        instance_processes.kill_all("orphan")
    assert listeners.owns_grpc(process, SocketAddress(path, f"{path}/none"), 1) is None
    assert listeners.owns_grpc(process, SocketAddress(path), 1)


def connects_as(user: int, path: str) -> str:
    """What a program of another user meets there. It can only read its own code as root."""
    program = f"import os, socket, sys; os.setgroups([]); os.setgid({user}); os.setuid({user})"
    program += "\nsocket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    argv = [sys.executable, "-c", program, path]
    done = subprocess.run(argv, cwd="/", capture_output=True, text=True, check=False)
    return done.stderr.strip().rpartition("\n")[2]


@pytest.mark.skipif(os.getuid() != 0, reason="run as root: only root can start a program as another user")
def test_another_user_cannot_connect_even_where_its_parent_is_open_to_all(tmp_path: Path) -> None:
    # So long that the sockets are in /tmp, where everybody may enter.
    instance = Instance(tmp_path / ("long" * 30))
    try:
        supervised = instance.supervise(instance.spawn(SERVER))
        wait_until(lambda: supervised.record.phase == "ready", "the instance is ready")
        for path in (instance.sockets, instance.sockets.parent):
            assert path.stat().st_mode & 0o777 == 0o700
        for name in ("http", LONGEST_SOCKET_NAME):
            (instance.sockets / name).chmod(0o777)
            assert connects_as(NOBODY, str(instance.sockets / name)).startswith("PermissionError")
    finally:
        instance.close()


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Local]:
    made = Local(tmp_path)
    yield made
    made.close()


def started(local: Local, attempt: int = 0) -> InstanceRecord:
    instance_id = f"{SPEC.name}-0-{attempt}"
    local.runtime.start(SPEC, 0, attempt, PROBE, PROBE)
    local.until(lambda: one(local.runtime, instance_id).phase == "ready")
    record = instance_records.load(local.home.instances / instance_id)
    assert record is not None
    return record


@pytest.mark.serving
def test_no_port_is_open_and_no_secret_is_in_the_arguments(local: Local) -> None:
    record = started(local)
    assert record.process is not None
    words = Path(f"/proc/{record.process.pid}/cmdline").read_text().split("\0")
    assert [word for word in words if "amphitrite-admin" in word] == [
        f"--{name}=model-repository,shared-memory,trace,logging:amphitrite-admin=local"
        for name in ("http-restricted-api", "grpc-restricted-protocol")
    ]
    for table in ("tcp", "tcp6"):
        lines = Path(f"/proc/{record.process.pid}/net/{table}").read_text().splitlines()[1:]
        listening = {line.split()[9] for line in lines if line.split()[3] == "0A"}
        descriptors = Path(f"/proc/{record.process.pid}/fd").iterdir()
        assert not {os.readlink(one) for one in descriptors} & {f"socket:[{inode}]" for inode in listening}


@pytest.mark.serving
def test_its_log_says_nothing_of_connections(local: Local) -> None:
    started(local)
    assert "NODELAY" in (local.home.instances / ID / "server.log").read_text()
    told = local.runtime.logs(SPEC.endpoint, SPEC.deployment, LogQuery(1000))
    assert "Started HTTPService at unix:" in told
    assert "NODELAY" not in told


@pytest.mark.serving
@pytest.mark.parametrize("name", ["http", LONGEST_SOCKET_NAME])
def test_who_listens_first_is_never_asked(local: Local, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    impostors: list[Impostor] = []
    create = socket_directories.create

    def occupied(home: Home) -> Path:
        path = create(home)
        if not impostors:
            impostors.append(Impostor(str(path / name)))
        return path

    monkeypatch.setattr(socket_directories, "create", occupied)
    record = started(local)
    with impostors[0] as impostor:
        # Triton cannot take the one for HTTP, and takes the one for gRPC from whoever is there.
        assert record.restarts == (1 if name == "http" else 0)
        assert impostor.requests == []


@pytest.mark.serving
def test_a_long_home_has_its_sockets_elsewhere_and_they_are_removed(tmp_path: Path) -> None:
    local = Local(tmp_path / ("long" * 30))
    try:
        record = started(local)
        assert record.sockets is not None
        assert not Path(record.sockets).is_relative_to(local.home.root)
        assert len(record.address.path if isinstance(record.address, SocketAddress) else "") < 108
        local.runtime.stop(ID, 30)
        local.until(lambda: one(local.runtime, ID).phase == "exited")
        assert not Path(record.sockets).exists()
        again = started(local, attempt=1)
        assert again.sockets not in (None, record.sockets)
        local.runtime.close()
        stop_all(local.home, 30)
        assert not Path(record.sockets).parent.exists()
    finally:
        local.runtime = local.open()
        local.close()


def test_directories_that_no_record_names_are_removed(tmp_path: Path) -> None:
    local = Local(tmp_path)
    orphan = socket_directories.create(local.home)
    (orphan / "http").touch()
    local.runtime.close()
    local.runtime = local.open()
    assert not orphan.exists()
    local.close()


@pytest.mark.serving
def test_an_instance_of_an_earlier_release_serves_on_its_ports_until_it_is_replaced(local: Local) -> None:
    local.runtime.close()
    record, triton = by_ports(local.home, local.repositories)
    local.runtime = local.open()
    local.until(lambda: one(local.runtime, ID).phase == "ready")
    observed = one(local.runtime, ID)
    assert observed.address == Address("127.0.0.1", record["port"], record["grpc_port"])
    assert local.process(ID) == triton.pid
    local.runtime.stop(ID, 30)
    local.until(lambda: one(local.runtime, ID).phase == "exited")
    assert started(local, attempt=1).sockets is not None


def by_ports(home: Home, repositories: Callable[[str], Path]) -> tuple[dict[str, int], ProcessRecord]:
    """A Triton and its record, as the release before UNIX sockets has left them."""
    directory = home.instances / ID
    directory.mkdir()
    found = installation.locate(os.environ)
    address = Address("127.0.0.1", free_port(), free_port())
    backends = backend_directory.prepare(found, home.root / "backends", os.environ)
    prefix = instance_processes.shm_prefix(home.root, ID)
    options = Options(repositories("good"), backends, address, prefix)
    marker = instance_processes.marker(home.root, ID)
    variables = command_line.environment(found, os.environ, marker=marker, cores=1, gpus=False, variables={})
    log = instance_logs.open_for_append(directory)
    process = instance_processes.spawn(command_line.arguments(found, options), variables, directory, log)
    os.close(log)
    written = asdict(InstanceRecord(ID, SPEC, 0, 0, PROBE, PROBE, time.time(), process=process))
    written |= {"port": address.port, "grpc_port": address.grpc_port}
    del written["sockets"]
    (directory / instance_records.FILE).write_text(json.dumps(written))
    return written, process


@pytest.mark.serving
def test_an_isolated_instance_sees_its_own_sockets_alone(local: Local) -> None:
    if not local.isolation.on:
        pytest.skip(f"instances are not isolated here: {local.isolation.note}")
    first = started(local)
    local.runtime.start(SPEC, 1, 0, PROBE, PROBE)
    second_id = f"{SPEC.name}-1-0"
    local.until(lambda: one(local.runtime, second_id).phase == "ready")
    second = instance_records.load(local.home.instances / second_id)
    assert second is not None
    for record, other in ((first, second), (second, first)):
        assert record.process is not None
        seen = Path(f"/proc/{record.process.pid}/root")
        assert (seen / f"{record.sockets}/http".lstrip("/")).is_socket()
        assert not (seen / str(other.sockets).lstrip("/")).exists()
        assert [path.name for path in (seen / str(record.sockets).lstrip("/")).parent.iterdir()] == [
            Path(record.sockets or "").name
        ]
