"""What only a runtime with processes can do: be adopted, be killed between two steps, leave traces,
share a machine."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from amphitrite.controlplane.runtimes import exit_reasons
from amphitrite.controlplane.runtimes.local import instance_processes, instance_records, isolated_start
from amphitrite.controlplane.runtimes.local.local_runtime import LocalRuntime, stop_all
from amphitrite.controlplane.runtimes.runtime import LogQuery
from amphitrite.schemas.errors import Error

from .runtime_subjects import PROBE, Local, one, workload

pytestmark = pytest.mark.serving
SPEC = workload(instance_type="Standard_NC6s_v3", GREETING="hello")
ID = f"{SPEC.name}-0-0"


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Local]:
    made = Local(tmp_path)
    yield made
    made.close()


def start(local: Local) -> None:
    local.runtime.start(SPEC, 0, 0, PROBE, PROBE)
    local.until(lambda: one(local.runtime, ID).phase == "ready")


def markers(local: Local) -> list[str]:
    prefix = instance_processes.home_digest(local.home.root)
    return list(instance_processes.find(lambda value: value.startswith(prefix)).values())


def traces(local: Local) -> list[Path]:
    return list(Path("/dev/shm").glob(f"amphitrite-{instance_processes.home_digest(local.home.root)}-*"))


def test_what_lives_is_adopted_and_a_death_in_between_is_noticed(local: Local) -> None:
    start(local)
    before = one(local.runtime, ID)
    local.runtime.close()
    local.runtime = local.open()
    assert local.runtime.observe() == (before,)
    local.runtime.close()
    local.crash(ID)
    local.runtime = local.open()
    local.until(lambda: one(local.runtime, ID).phase == "exited")
    assert not one(local.runtime, ID).requested_stop
    assert (markers(local), traces(local)) == ([], [])


def test_nothing_is_fetched_and_the_log_of_fetching_says_so(local: Local) -> None:
    start(local)
    told = local.runtime.logs(SPEC.endpoint, SPEC.deployment, LogQuery(10, "storage-initializer"))
    assert told.startswith("Models are read in place from this server's store")
    assert local.runtime.logs(SPEC.endpoint, "another", LogQuery(10, "storage-initializer")) == ""


def test_what_is_older_is_told_by_tritons_own_times(local: Local) -> None:
    start(local)
    log = local.home.instances / ID / "server.log"
    later = time.time() + 3600
    os.utime(log, (later, later))  # As if a model had printed something meanwhile.
    old, young = (local.runtime.logs(SPEC.endpoint, SPEC.deployment, LogQuery(1000, since_s=s)) for s in (600, -600))
    assert "Started HTTPService" in old
    assert "Started HTTPService" not in young


def test_an_instance_is_found_again_when_its_pid_was_never_written(local: Local) -> None:
    start(local)
    local.runtime.close()
    directory = local.home.instances / ID
    record = instance_records.load(directory)
    assert record is not None
    instance_records.save(directory, replace(record, process=None, phase="starting", ready_at=None))
    local.runtime = local.open()
    local.until(lambda: one(local.runtime, ID).phase == "ready")
    assert local.process(ID) == (record.process.pid if record.process else None)


def test_an_instance_without_a_record_is_ended(local: Local) -> None:
    start(local)
    local.runtime.close()
    (local.home.instances / ID / "instance.json").unlink()
    local.runtime = local.open()
    assert local.runtime.observe() == ()
    assert not (local.home.instances / ID).exists()
    assert (markers(local), traces(local)) == ([], [])


def test_stop_all_ends_everything_without_a_control_plane(local: Local) -> None:
    start(local)
    local.runtime.start(SPEC, 1, 0, PROBE, PROBE)
    local.runtime.close()
    os.kill(local.process(ID), signal.SIGSTOP)  # It cannot follow SIGTERM.
    stop_all(local.home, 0.2)
    assert (markers(local), traces(local)) == ([], [])
    stop_all(local.home, 0.2)
    local.runtime = local.open()
    assert [(i.phase, i.requested_stop) for i in local.runtime.observe()] == [("exited", True)] * 2


def test_what_is_said_about_the_instance(local: Local) -> None:
    start(local)
    instance = one(local.runtime, ID)
    assert (instance.engine or "").startswith("Triton 2.")
    assert "(onnxruntime 1." in (instance.engine or "")
    directory = local.home.instances / ID
    assert (directory / "instance.json").stat().st_mode & 0o777 == 0o600
    environment = Path(f"/proc/{local.process(ID)}/environ").read_bytes().split(b"\0")
    assert b"GREETING=hello" in environment
    if not list(Path("/dev").glob("nvidia[0-9]*")):
        gpu = "Standard_NC6s_v3 has 1 x V100, but this machine has no GPU, so models run on the CPU"
        assert instance.note == local.noted(gpu)
        assert (directory / "server.log").read_text().startswith(f"amphitrite: {gpu}\n")


def test_an_instance_that_hangs_is_unready_and_not_live_until_it_goes_on(local: Local) -> None:
    probe = replace(PROBE, timeout=1, failure_threshold=1)
    local.runtime.start(SPEC, 0, 0, probe, probe)
    local.until(lambda: one(local.runtime, ID).phase == "ready")
    os.kill(local.process(ID), signal.SIGSTOP)
    local.until(lambda: one(local.runtime, ID).phase == "unready" and not one(local.runtime, ID).live)
    os.kill(local.process(ID), signal.SIGCONT)
    local.until(lambda: one(local.runtime, ID).phase == "ready" and one(local.runtime, ID).live)


def test_a_loading_process_that_dies_unnoticed_by_triton_is_a_failure(local: Local) -> None:
    model = local.repositories("broken") / "tiny"
    (model / "1" / "model.onnx").unlink()
    (model / "1" / "model.py").write_text(
        "import os\nclass TritonPythonModel:\n  @staticmethod\n  def auto_complete_config(c): os.kill(os.getpid(), 9)\n"
    )
    (model / "config.pbtxt").write_text('backend: "python"\n')
    spec = workload("broken")
    local.runtime.start(spec, 0, 0, PROBE, PROBE)
    local.until(lambda: one(local.runtime, f"{spec.name}-0-0").phase == "exited")
    assert one(local.runtime, f"{spec.name}-0-0").reason == exit_reasons.DEAD_STUB


#: Python models that cannot be loaded: their files, and what is told of each.
RAISING = {
    "initializes": (
        {"model.py": "import helper\nclass TritonPythonModel:\n  def initialize(self, args):\n    helper.weights()\n"}
        | {"helper.py": "def weights():\n  raise ValueError('no weights')\n"},
        "initializes/1/helper.py:2: ValueError: no weights",
    ),
    "imports": (
        {"model.py": "import json\njson.loads('{')\n"},
        "imports/1/model.py:2: JSONDecodeError: Expecting property name",
    ),
    "lacks": (
        {"model.py": "\nimport not_installed\n"},
        "lacks/1/model.py:2: ModuleNotFoundError: No module named 'not_installed'",
    ),
    "unparsed": ({"model.py": "x = 1\nif x\n"}, "unparsed/1/model.py:2: SyntaxError: "),
}


def test_a_python_model_that_raises_is_told_with_the_line_that_does(local: Local) -> None:
    directory = local.repositories("broken")
    shutil.rmtree(directory / "tiny")
    for name, (files, _) in RAISING.items():
        (directory / name / "1").mkdir(parents=True)
        for file, text in files.items():
            (directory / name / "1" / file).write_text(text)
        (directory / name / "config.pbtxt").write_text('backend: "python"\n')
    spec = workload("broken")
    local.runtime.start(spec, 0, 0, PROBE, PROBE)
    local.until(lambda: one(local.runtime, f"{spec.name}-0-0").phase == "exited")
    reason = one(local.runtime, f"{spec.name}-0-0").reason or ""
    assert [told for _, told in RAISING.values() if told not in reason] == [], reason


def test_a_home_that_triton_cannot_name_is_refused(tmp_path: Path) -> None:
    local = Local(tmp_path / "with space")
    with pytest.raises(Error, match="does not quote paths") as caught:
        local.runtime.start(SPEC, 0, 0, PROBE, PROBE)
    assert (caught.value.code, "ML_HOME" in (caught.value.hint or "")) == ("BadArgument", True)
    local.close()


def test_no_triton_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    local = Local(tmp_path)
    runtime = LocalRuntime(local.home, local.repositories, machine={"TRITON_SERVER": str(tmp_path / "none")})
    with pytest.raises(Error, match="not an executable file"):
        runtime.start(SPEC, 0, 0, PROBE, PROBE)
    assert runtime.observe() == ()
    assert list(local.home.instances.iterdir()) == []
    runtime.close()
    local.close()


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_fails_the_start_and_says_so(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reconciler must hear of it: an OSError would end its pass, and nobody would get a
    status."""
    monkeypatch.setattr(isolated_start, "write_note", full)
    local.runtime.start(SPEC, 0, 0, PROBE, PROBE)
    found = one(local.runtime, ID)
    assert found.phase == "exited"
    assert "No space left on device" in str(found)
    monkeypatch.setattr(instance_records, "save", full)
    with pytest.raises(Error, match=r"cannot start Triton.*No space left on device") as refused:
        local.runtime.start(SPEC, 1, 0, PROBE, PROBE)
    assert refused.value.code == "RuntimeUnavailable"
    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(Error, match=r"cannot start Triton.*No space left on device"):
        local.runtime.start(SPEC, 2, 0, PROBE, PROBE)
    monkeypatch.undo()
