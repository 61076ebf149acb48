"""What instances take on this machine: what is needed stays, what is left behind may go."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from amphitrite.controlplane.core.desired.resources import (
    DEFAULT_LIVENESS_PROBE,
    DEFAULT_READINESS_PROBE,
    ModelReference,
    workload_spec,
)
from amphitrite.controlplane.runtimes.local import instance_records, instance_storage
from amphitrite.controlplane.runtimes.local.instance_records import InstanceRecord
from amphitrite.controlplane.runtimes.local.local_runtime import LocalRuntime
from amphitrite.controlplane.settings.home import Home
from amphitrite.dataplane.triton import native_backend


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.create()
    return home


def exited(home: Home) -> str:
    """The directory of an instance that has ended, with its record and its log."""
    workload = workload_spec("ep", "blue", ModelReference("m", "1", "d", ("m",)), "Standard_DS3_v2", {})
    record = InstanceRecord(
        f"{workload.name}-0-0", workload, 0, 0, DEFAULT_READINESS_PROBE, DEFAULT_LIVENESS_PROBE, 1.0, phase="exited"
    )
    (home.instances / record.id).mkdir()
    instance_records.save(home.instances / record.id, record)
    return record.id


def test_directories_without_a_record_may_go_and_others_stay(home: Home) -> None:
    known = exited(home)
    runtime = LocalRuntime(home, lambda digest: home.models)
    (home.instances / "orphan").mkdir()
    (home.instances / "orphan" / "server.log").write_bytes(b"x" * 9)
    found = {item.name: item for item in runtime.stored() if item.kind == "instance"}
    assert {name: item.needed for name, item in found.items()} == {known: True, "orphan": False}
    assert (found["orphan"].files, found["orphan"].size) == (1, 9)
    assert [runtime.discard(item) for item in found.values()] == [item.name == "orphan" for item in found.values()]
    assert [path.name for path in home.instances.iterdir()] == [known]
    assert runtime.discard(found["orphan"]) is False
    runtime.forget(known)
    assert runtime.discard(found[known]) is False, "it is gone already"
    runtime.close()


def test_backends_stay_for_the_next_instance_and_for_running_ones(home: Home) -> None:
    parent = home.root / instance_storage.BACKENDS
    for age, name in enumerate(("new", "running", "old")):
        (parent / name).mkdir(parents=True)
        os.utime(parent / name, (1000 - age, 1000 - age))
    command = [sys.executable, "-c", "print(flush=True); input()", f"--backend-directory={parent / 'running'}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        # The kernel shows no arguments for a moment after the program has been replaced.
        assert process.stdout is not None and process.stdout.readline()
        found = {item.name: item for item in instance_storage.backend_items(parent, None, [process.pid])}
        process.communicate(b"\n")
    assert {name: item.needed for name, item in found.items()} == {"new": True, "running": True, "old": False}
    chosen = instance_storage.backend_items(parent, parent / "old", [])
    assert {item.name: item.needed for item in chosen} == {"new": False, "running": False, "old": True}
    runtime = LocalRuntime(home, lambda digest: home.models)
    assert [runtime.discard(found[name]) for name in ("new", "old")] == [False, True]
    assert sorted(path.name for path in parent.iterdir()) == ["new", "running"]
    runtime.close()


def test_of_compiled_backends_the_one_in_use_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if native_backend.find(os.environ) is None:
        pytest.skip("there is no compiler, or it was chosen not to use it")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    cache = tmp_path / "lib" / "amphitrite" / "onnxruntime-backend"
    (cache / "stale").mkdir(parents=True)
    native = native_backend.find(os.environ)
    assert native is not None
    current = cache / native.library.parent.name
    current.mkdir(exist_ok=True)
    assert dict(native_backend.builds(os.environ)) == {cache / "stale": False, current: True}
    assert dict(native_backend.builds({"PATH": "/nowhere"})) == {cache / "stale": True, current: True}
