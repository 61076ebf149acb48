"""The runtimes under test, each with the few things that a test must be able to do to it."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import onnx
from onnx import TensorProto, helper

from amphitrite.controlplane.core.desired.resources import ModelReference, Probe, WorkloadSpec, workload_spec
from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.runtimes.isolation import support
from amphitrite.controlplane.runtimes.local import instance_records, socket_directories
from amphitrite.controlplane.runtimes.local.local_runtime import LocalRuntime
from amphitrite.controlplane.runtimes.runtime import Runtime
from amphitrite.controlplane.settings.home import Home

from .memory_runtime import MemoryRuntime

DEADLINE_S = 180.0
PROBE = Probe(initial_delay=0, period=1, timeout=2, success_threshold=1, failure_threshold=2)


def workload(
    digest: str = "good", deployment: str = "blue", instance_type: str = "Standard_DS2_v2", **variables: str
) -> WorkloadSpec:
    model = ModelReference("m", "1", digest, ("tiny",))
    return workload_spec("ep", deployment, model, instance_type, variables)


def repository(root: Path) -> Callable[[str], Path]:
    """``good`` holds a model ``tiny``, ``broken`` one that cannot be loaded, ``gpu`` two that need
    a GPU."""
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 1])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for digest, content in (("good", model.SerializeToString()), ("broken", b"no model")):
        directory = root / digest / "tiny" / "1"
        directory.mkdir(parents=True)
        (directory / "model.onnx").write_bytes(content)
        (directory.parent / "config.pbtxt").write_text("instance_group { count: 1 kind: KIND_CPU }\n")
    shutil.copytree(root / "good", root / "gpu")
    (root / "gpu" / "tiny" / "config.pbtxt").write_text("instance_group { kind: KIND_GPU gpus: [ 0, 1 ] }\n")
    (root / "gpu" / "python" / "1").mkdir(parents=True)
    (root / "gpu" / "python" / "1" / "model.py").write_text(
        "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
    )
    (root / "gpu" / "python" / "config.pbtxt").write_text('backend: "python"\ninstance_group { kind: KIND_GPU }\n')
    onnx.checker.check_model(model)
    return lambda digest: root / digest


class Memory:
    #: What has ended stays until it is forgotten.
    keeps_records = True

    def __init__(self) -> None:
        self.memory = MemoryRuntime(time.time, {"broken": "failed to load 'tiny' version 1: no model"})
        self.runtime: Runtime = self.memory

    def noted(self, note: str) -> str:
        return note

    def workload(self, model: str = "good") -> WorkloadSpec:
        return workload(model)

    def until(self, condition: Callable[[], bool]) -> None:
        if not condition():
            self.memory.settle()
        assert condition()

    def crash(self, instance_id: str) -> None:
        self.memory.crash(instance_id, -9, "killed by SIGKILL")

    def close(self) -> None:
        self.runtime.close()


class Local:
    keeps_records = True

    def __init__(self, root: Path) -> None:
        self.home, self.repositories = Home(root / "home"), repository(root / "models")
        self.home.create()
        self.changed = threading.Event()
        self.isolation = support.choose(os.environ.get("ML_ISOLATION") or "auto")
        self.runtime: Runtime = self.open()

    def workload(self, model: str = "good") -> WorkloadSpec:
        return workload(model)

    def open(self) -> LocalRuntime:
        """A runtime on this home, as the next control plane would have it."""
        runtime = LocalRuntime(self.home, self.repositories, isolation=self.isolation, limits=True)
        runtime.watch(self.changed.set)
        return runtime

    def until(self, condition: Callable[[], bool]) -> None:
        """Woken by the runtime alone: a change without a wake is a failure."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            self.changed.clear()
            if condition():
                return
            assert self.changed.wait(max(0.0, deadline - time.monotonic())), self.runtime.observe()

    def process(self, instance_id: str) -> int:
        record = instance_records.load(self.home.instances / instance_id)
        assert record is not None
        assert record.process is not None
        return record.process.pid

    def noted(self, note: str) -> str:
        """The note of an instance, which also says where this machine cannot isolate it."""
        return "; ".join(one for one in (note, self.isolation.note) if one)

    def crash(self, instance_id: str) -> None:
        os.kill(self.process(instance_id), signal.SIGKILL)

    def close(self) -> None:
        for instance in self.runtime.observe():
            self.runtime.stop(instance.id, 0)
        self.until(lambda: all(i.phase == "exited" for i in self.runtime.observe()))
        self.runtime.close()
        socket_directories.remove_all(self.home)


def one(runtime: Runtime, instance_id: str) -> Instance:
    (instance,) = (i for i in runtime.observe() if i.id == instance_id)
    return instance
