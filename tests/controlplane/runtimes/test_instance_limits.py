"""What an instance may use: where control groups can be made, and what ends an instance that uses
more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from amphitrite.controlplane.core.desired import instance_types
from amphitrite.controlplane.core.desired.resources import DEFAULT_INSTANCE_TYPE
from amphitrite.controlplane.runtimes.isolation import control_groups, memory_watch
from amphitrite.controlplane.runtimes.isolation.control_groups import ControlGroups, Hierarchy, Limits
from amphitrite.controlplane.runtimes.local.instance_limits import NO_LIMITS, InstanceLimits
from amphitrite.dataplane.machine import processes

from ...waiting import wait_until

MIB = 1024**2
#: Uses as many MiB as its argument says, and then waits.
USE = "import sys, time; used = b'x' * (int(sys.argv[1]) << 20); print('used', flush=True); time.sleep(600)"
NAME = f"amphitrite-test-{os.getpid()}"
FOUND = control_groups.find(NAME)


def group(root: Path, name: str, enabled: str = "cpu memory pids") -> None:
    (root / name).mkdir(parents=True, exist_ok=True)
    (root / name / "cgroup.procs").touch()
    (root / name / "cgroup.subtree_control").write_text(enabled)


@pytest.mark.parametrize(
    ("mounts", "own", "groups", "expected"),
    [
        # A user's own manager of services, as on a desktop: beside the own group.
        (
            "1 1 0:1 / {root} rw - cgroup2 cgroup2 rw",
            "0::/user/app.slice/terminal.scope",
            ["user/app.slice", "user/app.slice/terminal.scope"],
            [("user/app.slice", 2, ("memory", "pids", "cpu"))],
        ),
        # What is mounted is a part of the hierarchy.
        (
            "1 1 0:1 /docker/1 {root} rw - cgroup2 cgroup2 rw",
            "0::/docker/1/server",
            ["", "server"],
            [("", 2, ("memory", "pids", "cpu"))],
        ),
        # Version 1, two controllers in one hierarchy.
        (
            "1 1 0:1 / {root}/memory rw - cgroup cgroup rw,memory\n1 1 0:1 / {root}/cpu rw - cgroup c rw,cpu,cpuacct",
            "4:memory:/a\n1:cpu,cpuacct:/\n0::/",
            ["memory/a", "cpu"],
            [("memory/a", 1, ("memory",)), ("cpu", 1, ("cpu",))],
        ),
        # No group may be created there.
        ("1 1 0:1 / /nowhere rw - cgroup2 cgroup2 rw", "0::/a/b", [], []),
        ("1 1 0:1 / / rw - ext4 /dev/vda rw", "0::/", [], []),
    ],
)
def test_where_groups_can_be_made(
    tmp_path: Path, mounts: str, own: str, groups: list[str], expected: list[tuple[str, int, tuple[str, ...]]]
) -> None:
    root, proc = tmp_path / "sys", tmp_path / "proc"
    proc.mkdir()
    (proc / "mountinfo").write_text(mounts.format(root=root))
    (proc / "cgroup").write_text(own)
    for one in groups:
        group(root, one)
    found = control_groups.find("mine", proc).hierarchies
    assert found == tuple(Hierarchy(root / path, version, kinds) for path, version, kinds in expected)


def test_what_is_written_to_groups_of_version_2(tmp_path: Path) -> None:
    group(tmp_path, "")
    group(tmp_path, "mine")
    files = {"memory.max": "1000", "memory.oom.group": "1", "pids.max": "50", "cpu.weight": "400"}
    (tmp_path / "mine" / "x-1").mkdir()
    (tmp_path / "mine" / "cpu.weight").touch()
    for file in files:
        (tmp_path / "mine" / "x-1" / file).touch()
    made = ControlGroups("mine", (Hierarchy(tmp_path, 2, ("memory", "pids", "cpu")),))
    assert made.create("x-1", Limits(1000, 4, 50)) == (tmp_path / "mine" / "x-1" / "cgroup.procs",)
    assert {file: (tmp_path / "mine" / "x-1" / file).read_text() for file in files} == files
    assert (tmp_path / "mine" / "cpu.weight").read_text() == str(min(10_000, 100 * (os.cpu_count() or 1)))
    assert (tmp_path / "mine" / "cgroup.subtree_control").read_text().startswith("+memory +pids +cpu")
    for text, killed in (("low 0\noom 3\noom_kill 0\n", False), ("oom 3\noom_kill 1\n", True)):
        (tmp_path / "mine" / "x-1" / "memory.events").write_text(text)
        assert made.out_of_memory("x-1") == killed


@pytest.mark.skipif(
    not FOUND.limit_memory, reason="run as root, or as a service of your systemd: no cgroup is writable"
)
def test_the_kernel_ends_a_process_that_needs_more_and_no_group_stays() -> None:
    try:
        files = FOUND.create("x-1", Limits(64 * MIB, 1, 100))
        process = subprocess.Popen(
            [sys.executable, "-c", f"import sys; sys.stdin.read(1); {USE}", "200"], stdin=subprocess.PIPE
        )
        control_groups.join(files, process.pid)
        process.communicate(b".")
        assert process.returncode == -signal.SIGKILL
        assert FOUND.out_of_memory("x-1")
        assert FOUND.limits_memory_of("x-1")
    finally:
        FOUND.remove_all()
    assert not any((one.directory / NAME).exists() for one in FOUND.hierarchies)


def test_the_watch_counts_what_children_use() -> None:
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {USE!r}, '150'])"
    process = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        assert len(list(memory_watch.descendants(process.pid))) == 1
        assert 150 * MIB < memory_watch.used_bytes(process.pid) < 250 * MIB
    finally:
        for pid in (*memory_watch.descendants(process.pid), process.pid):
            os.kill(pid, signal.SIGKILL)
        process.communicate()
    assert memory_watch.used_bytes(process.pid) == 0


def test_an_instance_that_is_watched_has_to_end_when_it_uses_more_than_its_type_has() -> None:
    gib = instance_types.find(DEFAULT_INSTANCE_TYPE).memory_gib
    argv = [sys.executable, "-c", USE, str(int(gib * 1024))]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        limits, record = InstanceLimits(ControlGroups("none", ())), processes.of(process.pid)
        wait_until(lambda: limits.exceeded("x-1", DEFAULT_INSTANCE_TYPE, record) is not None, "it is too large")
        said = limits.exceeded("x-1", DEFAULT_INSTANCE_TYPE, record) or ""
        assert said.startswith(f"it needed more memory than the {gib:g} GiB of {DEFAULT_INSTANCE_TYPE}")
        assert limits.exceeded("x-1", "Standard_DS3_v2", record) is None
        assert NO_LIMITS.exceeded("x-1", DEFAULT_INSTANCE_TYPE, record) is None
    finally:
        process.kill()
        process.communicate()
