"""Isolated processes: what they see, what becomes of them, and what is said where it is forbidden.

The processes are real; no Triton is needed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from amphitrite.controlplane.runtimes.isolation import support, view
from amphitrite.controlplane.runtimes.isolation.launch import IsolationFailed, Launcher, Plan
from amphitrite.controlplane.runtimes.isolation.support import Isolation
from amphitrite.controlplane.runtimes.isolation.view import View
from amphitrite.controlplane.runtimes.local import instance_processes, model_copies
from amphitrite.dataplane.machine import processes
from amphitrite.schemas.errors import Error

from ...waiting import wait_until

FOUND = support.probe()
needs_namespaces = pytest.mark.skipif(not FOUND.on, reason=f"{FOUND.why}: {FOUND.hint}")


class Sandbox:
    """A server's directory with a secret, and an instance's directory in it."""

    def __init__(self, home: Path) -> None:
        self.home, self.instance, self.scratch = home, home / "instance", home / "instance" / "scratch"
        self.scratch.mkdir(parents=True)
        (home / "token").write_text("secret")
        (home / "model").mkdir()
        (home / "model" / "model.py").write_text("code")
        self.marker = instance_processes.marker(home, "x-1")

    def start(self, script: str, **more: object) -> int:
        """The pid of a shell in the sandbox, whose output is in the file ``log``."""
        shown = View((self.home,), (self.home / "model",), (self.scratch,), 1 << 20)
        values = {"user_namespace": FOUND.user_namespace, **more}
        plan = Plan(self.instance, self.scratch, tuple(view.mounts(shown)), **values)  # type: ignore[arg-type]
        environment = {instance_processes.MARKER: self.marker, "PATH": os.environ["PATH"], "PYTHON": sys.executable}
        return Launcher().spawn(plan, ["/bin/sh", "-c", script], environment, self.home / "log")

    def run(self, script: str, **more: object) -> tuple[int, str]:
        """The exit code as ``subprocess`` has it, and the output."""
        (self.home / "log").unlink(missing_ok=True)
        code = os.waitstatus_to_exitcode(os.waitpid(self.start(script, **more), 0)[1])
        return code, (self.home / "log").read_text()


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    made = Sandbox(tmp_path / "home")
    yield made
    instance_processes.kill_all(made.marker)


@needs_namespaces
@pytest.mark.parametrize(
    ("script", "code", "output"),
    [
        ("exit 7", 7, ""),
        ("kill -SEGV $$", -11, ""),
        ("kill -KILL $$", -9, ""),
        ("cat token || cat ../../token", 1, "No such file"),
        ("cat ../../model/model.py", 0, "code"),
        ("echo more >> ../../model/model.py", 2, "Read-only file system"),
        ("chmod 777 ../../model/model.py", 1, "Read-only file system"),
        ("echo x > /usr/x", 2, "Read-only file system"),
        ("echo x > /x", 2, "Read-only file system"),
        ("echo x > file && cat file", 0, "x"),
        ("head -c 3000000 /dev/zero > /tmp/x", 1, "No space left"),
        ("head -c 3000000 /dev/zero > /dev/shm/x", 1, "No space left"),
        ("echo 1 > /proc/sys/vm/overcommit_memory", 2, "Read-only file system|Permission denied"),
        ("cat /etc/shadow", 1, "No such file"),
        ("kill -9 1; echo alive", 0, "alive"),
        ("grep -c CapPrm:.0000000000000000 /proc/self/status", 0, "1"),
        ("grep -c NoNewPrivs:.1 /proc/self/status", 0, "1"),
        ("ls /root /home", 2, "cannot access"),
        ("test $(ps -e -o pid= | wc -l) -lt 6", 0, ""),
        ("mount -t tmpfs t /tmp", 1, "must be superuser|permission denied"),
        ('test "$(echo $(ls /dev))" = "fd full null random shm stderr stdin stdout urandom zero"', 0, ""),
    ],
)
def test_what_a_process_can_do(sandbox: Sandbox, script: str, code: int, output: str) -> None:
    found, text = sandbox.run(script)
    assert any(one in text for one in output.split("|")), text
    assert (found != 0) if code in (1, 2) else found == code, (found, text)


@needs_namespaces
def test_no_further_user_namespace_can_be_made(sandbox: Sandbox) -> None:
    """Without this, a model's code gets all capabilities in one, and much of the kernel to
    attack."""
    attack = "import ctypes; l = ctypes.CDLL(None, use_errno=True); print(l.unshare(0x10000000), ctypes.get_errno())"
    code, text = sandbox.run(f'"$PYTHON" -c "{attack}"')
    assert (code, text.split()[0]) == (0, "-1"), text


def same_namespace(pid: int) -> set[int]:
    """The processes of the sandbox that ``pid`` is in."""
    found, own = set(), os.readlink(f"/proc/{pid}/ns/pid")
    for one in Path("/proc").glob("[0-9]*/ns/pid"):
        with contextlib.suppress(OSError):
            if os.readlink(one) == own:
                found.add(int(one.parts[2]))
    return found


@needs_namespaces
def test_variables_of_a_deployment_bring_no_code_outside(sandbox: Sandbox) -> None:
    """LD_PRELOAD and PYTHON* act on the program, never on the launcher before it is isolated."""
    plan = Plan(sandbox.instance, Path("/"), tuple(view.mounts(View((sandbox.home,)))), FOUND.user_namespace)
    variables = {"PYTHONPATH": "/attack", "LD_PRELOAD": "/attack.so"}
    pid = Launcher().spawn(plan, ["/bin/sleep", "60"], variables, sandbox.home / "log")
    (init,) = same_namespace(pid) - {pid}
    # The kernel shows it a moment after the program has begun.
    wait_until(lambda: b"attack" in Path(f"/proc/{pid}/environ").read_bytes(), "the program has its variables")
    assert Path(f"/proc/{init}/environ").read_bytes() == b""
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert instance_processes.wait_for_exit([init], 10.0)


@needs_namespaces
def test_a_launcher_that_waits_starts_the_next_program_and_ends_with_its_owner(sandbox: Sandbox) -> None:
    starts, plan = Launcher(), Plan(sandbox.instance, Path("/"), tuple(view.mounts(View((sandbox.home,)))))
    plan = replace(plan, user_namespace=FOUND.user_namespace)

    def waiting() -> list[int]:
        return [one.pid for one in processes.psutil.Process().children() if "launcher.py" in " ".join(one.cmdline())]

    starts.prepare()
    starts.prepare()
    (one,) = waiting()
    pid = starts.spawn(plan, ["/bin/true"], {}, sandbox.home / "log")
    assert (os.waitpid(pid, 0)[1], waiting()) == (0, [])
    starts.prepare()
    (two,) = waiting()
    assert two != one
    os.kill(two, signal.SIGKILL)  # As the kernel does where memory is short.
    os.waitid(os.P_PID, two, os.WEXITED | os.WNOWAIT)
    assert os.waitpid(starts.spawn(plan, ["/bin/true"], {}, sandbox.home / "log"), 0)[1] == 0
    starts.prepare()
    starts.close()
    assert waiting() == []


@needs_namespaces
def test_the_process_is_a_child_and_a_session_leader_and_all_end_with_it(sandbox: Sandbox) -> None:
    pid = sandbox.start("sleep 60 & sleep 61 & echo ready > ready; wait")
    found = instance_processes.find_leader(sandbox.marker)
    assert found == processes.of(pid)
    assert os.getsid(pid) == pid
    assert processes.of(pid).pid in {child.pid for child in processes.psutil.Process().children()}
    while not (sandbox.scratch / "ready").exists() or len(same_namespace(pid)) < 4:
        os.sched_yield()
    everything = same_namespace(pid)
    os.kill(pid, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGTERM
    assert instance_processes.wait_for_exit(everything, 10.0)


@needs_namespaces
def test_an_orphan_is_reaped(sandbox: Sandbox) -> None:
    """Otherwise a model that starts daemons fills the table of processes with dead ones."""
    script = "for i in 1 2 3; do (sleep 0 &) ; done; while ps -e -o stat= | grep -q Z; do :; done; echo none"
    assert sandbox.run(script) == (0, "none\n")


@needs_namespaces
def test_it_survives_the_one_that_started_it(sandbox: Sandbox, tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.controlplane.runtimes.test_isolation import Sandbox\n"
        "print(Sandbox(Path(sys.argv[1])).start('sleep 60'), flush=True)\n"
        "import os; os.kill(os.getpid(), 9)"
    )
    other = tmp_path / "other"
    result = subprocess.run([sys.executable, "-c", program, str(other)], capture_output=True, text=True, check=False)
    assert result.returncode == -signal.SIGKILL, result.stderr
    record = instance_processes.find_leader(instance_processes.marker(other, "x-1"))
    assert record is not None
    assert record.pid == int(result.stdout)
    instance_processes.kill_all(instance_processes.marker(other, "x-1"))
    assert not processes.alive(record)


@needs_namespaces
def test_a_program_that_is_not_there_is_said(sandbox: Sandbox) -> None:
    plan = Plan(sandbox.instance, Path("/"), tuple(view.mounts(View((sandbox.home,)))), FOUND.user_namespace)
    with pytest.raises(IsolationFailed, match="cannot execute /no/program: No such file or directory"):
        Launcher().spawn(plan, ["/no/program"], {}, Path("/dev/null"))
    with pytest.raises(IsolationFailed, match="cannot mount /nowhere"):
        nowhere = Plan(Path("/nowhere"), Path("/"), (), FOUND.user_namespace)
        Launcher().spawn(nowhere, ["/bin/sh"], {}, Path("/dev/null"))


@needs_namespaces
def test_a_home_below_what_is_shown_is_hidden(tmp_path: Path) -> None:
    """For example a home in the directory of the Python environment."""
    (tmp_path / "shown" / "home" / "backends").mkdir(parents=True)
    (tmp_path / "shown" / "home" / "token").write_text("secret")
    home = tmp_path / "shown" / "home"
    inside = View(hidden=(home,), read_only=(home / "backends",), extra=(tmp_path / "shown",), temporary_bytes=1 << 20)
    made = [(kind, target) for kind, target, _ in view.mounts(inside) if target.startswith(str(tmp_path))]
    assert made == [
        ("read_only", str(tmp_path / "shown")),
        ("empty", str(home)),
        ("read_only", str(home / "backends")),
    ]
    plan = Plan(tmp_path, Path("/"), tuple(view.mounts(inside)), FOUND.user_namespace)
    os.waitpid(Launcher().spawn(plan, ["/bin/ls", str(home)], {}, tmp_path / "log"), 0)
    assert (tmp_path / "log").read_text() == "backends\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="run as root: only root may isolate without a user namespace")
@needs_namespaces
def test_root_needs_no_user_namespace(sandbox: Sandbox) -> None:
    """A machine may forbid them to all."""
    if not FOUND.user_namespace:
        pytest.skip("this machine forbids user namespaces, so all other tests did without")
    script = "grep CapEff: /proc/self/status; cat ../../token"
    code, text = sandbox.run(script, user_namespace=False)
    assert code == 1
    assert "0000000000000000" in text.split()[1]


def test_packages_outside_of_the_environment_are_shown(tmp_path: Path) -> None:
    """As those of ``pip install --user`` are, where Debian's Python finds ONNX Runtime."""
    packages = tmp_path / "site-packages"
    packages.mkdir()
    sys.path.append(str(packages))
    try:
        shown = [target for _, target, _ in view.mounts(View(()))]
    finally:
        sys.path.remove(str(packages))
    assert str(packages) in shown


SECCOMP = "Name:\tpython\nSeccomp:\t2\n"


@pytest.mark.parametrize(
    ("step", "number", "settings", "why", "hint"),
    [
        ("create namespaces", errno.EPERM, {"unprivileged_userns_clone": "0"}, "the kernel forbids", "userns_clone=1"),
        ("create namespaces", errno.ENOSPC, {"max_user_namespaces": "0"}, "allows no user namespaces", "sysctl -w"),
        ("map the user", errno.EPERM, {"apparmor_restrict_unprivileged_userns": "1"}, "AppArmor", "AppArmor profile"),
        ("mount /", errno.EACCES, {"apparmor_restrict_unprivileged_userns": "1"}, "AppArmor", "sysctl -w"),
        ("create namespaces", errno.EPERM, {"status": SECCOMP}, "a seccomp filter", "seccomp=unconfined"),
        ("mount /proc", errno.EPERM, {"status": SECCOMP}, "hides parts of /proc", "systempaths=unconfined"),
        ("mount /usr", errno.EINVAL, {}, "cannot mount /usr: Invalid argument", "isolation.md"),
    ],
)
def test_why_not_and_what_to_do(step: str, number: int, settings: dict[str, str], why: str, hint: str) -> None:
    said = support.explain(IsolationFailed(step, number), lambda path: settings.get(Path(path).name))
    assert why in said[0]
    assert hint in said[1]


def test_required_where_it_is_forbidden() -> None:
    def forbidden() -> Isolation:
        return Isolation(False, why="it is forbidden", hint="allow it")

    with pytest.raises(Error, match="cannot isolate instances, as --isolation required asks: it is forbidden") as told:
        support.choose("required", forbidden)
    assert (told.value.code, told.value.hint) == ("RuntimeUnavailable", "allow it")
    assert support.choose("auto", forbidden).text == "off: it is forbidden"
    assert "it is forbidden" in (support.choose("auto", forbidden).note or "")
    assert support.choose("off").text == "off: isolation is set to off"


@pytest.mark.skipif(os.geteuid() != 0, reason="run as root: only root may forbid user namespaces")
@needs_namespaces
def test_a_machine_that_forbids_user_namespaces_is_told_apart() -> None:
    """The limit is set inside of a user namespace, so it is no other process's."""
    program = (
        "import sys; open('/proc/sys/user/max_user_namespaces', 'w').write('0')\n"
        "from amphitrite.controlplane.runtimes.isolation import support; import os\n"
        "os.geteuid = lambda: 1\n"
        "print(support.probe().text)"
    )
    argv = ["unshare", "--user", "--map-root-user", sys.executable, "-c", program]
    result = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert result.stdout == "off: the kernel allows no user namespaces\n"


def test_a_model_without_isolation_is_a_copy(tmp_path: Path) -> None:
    """A hard link would let its code change the store's file, and so every other instance."""
    stored = tmp_path / "stored" / "m" / "1"
    stored.mkdir(parents=True)
    (stored / "empty").mkdir()
    (tmp_path / "content").write_text("right")
    (tmp_path / "content").chmod(0o444)
    os.link(tmp_path / "content", stored / "model.py")
    (tmp_path / "instance").mkdir()
    for _ in range(2):
        files = model_copies.own_files(tmp_path / "instance", tmp_path / "stored")
    assert (files / "m" / "1" / "empty").is_dir()
    (files / "m" / "1" / "model.py").chmod(0o644)
    (files / "m" / "1" / "model.py").write_text("wrong")
    assert (tmp_path / "content").read_text() == "right"


def test_a_model_that_does_not_fit_on_the_disk_leaves_the_space_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(source: str, target: str) -> None:
        Path(target).write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "stored").mkdir()
    (tmp_path / "stored" / "model.py").write_text("all of it")
    monkeypatch.setattr(model_copies, "_copy", fill)
    with pytest.raises(OSError, match=r"^\[Errno 28\] No space left on device$"):
        model_copies.own_files(tmp_path / "instance", tmp_path / "stored")
    assert not list((tmp_path / "instance").iterdir())


@needs_namespaces
def test_without_the_machines_network_a_process_reaches_itself_alone(sandbox: Sandbox) -> None:
    attack = (
        "import socket; mine = socket.create_server(('127.0.0.1', 0));"
        "socket.create_connection(mine.getsockname()); socket.create_connection(('127.0.0.1', {}))"
    )
    with socket.create_server(("127.0.0.1", 0)) as service:
        script = f'"$PYTHON" -c "{attack.format(service.getsockname()[1])}"'
        assert sandbox.run(script) == (0, "")
        code, text = sandbox.run(script, own_network=True)
    assert (code, text.splitlines()[-1]) == (1, "ConnectionRefusedError: [Errno 111] Connection refused")
