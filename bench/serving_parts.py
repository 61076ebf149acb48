"""Where the time of one inference goes below the router, and what instances and threads do.

``session`` is the bare session in this process, ``session and joining`` with what our Python
backend does around it. ``cached`` is answered by Triton's response cache: HTTP and a hash of the
input, no backend. ``native`` is our backend in its native form. The rest do ever more: ``stub`` is
a Python model that answers with a tensor it holds (HTTP and the way to the stub's process),
``copies`` makes an array of its input, ``python`` is our backend in Python. In the table of starts
a server of each form has the example's model alone.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from amphitrite.dataplane.triton.backends.onnxruntime import batching
from amphitrite.dataplane.triton.backends.onnxruntime.session import Session
from bench import machine, tritons
from bench.loadgen import Generator, Load, request_file
from bench.stats import Report, middle, spread
from bench.tensors import MODELS, Model, files

_CALLS = 300
FORMS = ("native", "python")
#: A model that answers with one tensor that it holds.
_STUB = """
import numpy as np
import triton_python_backend_utils as triton


class TritonPythonModel:
    def initialize(self, args):
        self.answer = np.zeros((1, {results}), np.float32)

    def execute(self, requests):
        answers = []
        for request in requests:
            given = triton.get_input_tensor_by_name(request, "{input}")
            if {copies}:
                np.ascontiguousarray(given.as_numpy())
            answers.append(triton.InferenceResponse(output_tensors=[triton.Tensor("{output}", self.answer)]))
        return answers
"""


def config(model: Model, backend: str, more: str = "") -> str:
    """config.pbtxt without batching, so that each request goes alone."""
    dims = ", ".join(map(str, model.shape))
    return f"""backend: "{backend}"
input [{{ name: "{model.input}" data_type: TYPE_FP32 dims: [{dims}] }}]
output [{{ name: "{model.output}" data_type: TYPE_FP32 dims: [1, {model.results}] }}]
instance_group [{{ kind: KIND_CPU count: 1 }}]
{more}
"""


def repository(root: Path, onnx: dict[str, Path]) -> Path:
    """Every part of every model."""
    for name, model in MODELS.items():
        for part, copies in (("stub", False), ("copies", True)):
            code = _STUB.format(results=model.results, input=model.input, output=model.output, copies=copies)
            tritons.write_model(root, f"{name}_{part}", {"model.py": code}, config(model, "python"))
        cached = config(model, "python", "response_cache { enable: true }")
        code = _STUB.format(results=model.results, input=model.input, output=model.output, copies=False)
        tritons.write_model(root, f"{name}_cached", {"model.py": code}, cached)
        file = {"model.onnx": onnx[name]}
        group = "instance_group [{ kind: KIND_CPU count: 1 }]\n"
        tritons.write_model(root, f"{name}_onnxruntime", file, 'backend: "onnxruntime"\n' + group)
    return root


def bare(model: Model, file: Path, joined: bool) -> float:
    """Milliseconds of one call (median): the session alone, or with what our backend does around
    it."""
    session = Session(file, {"instance_group": [{"count": 1}]}, None)
    inputs = {model.input: model.request().tensor}
    one = [batching.Request(inputs, (model.output,))]
    times = []
    for _ in range(_CALLS):
        began = time.perf_counter()
        if joined:
            answer = batching.run_all(session.run, one, batching=True)[0]
            assert not isinstance(answer, Exception)
            np.ascontiguousarray(answer[model.output])
        else:
            session.run([model.output], inputs)
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def layers(work: Path, onnx: dict[str, Path], seconds: float, rounds: int) -> list[dict[str, Any]]:
    rows = []
    root = repository(work / "parts", onnx)
    with tritons.running(work, root, form="python") as triton, tritons.running(work, root, form="native") as native:
        for name, model in MODELS.items():
            request = model.request()
            seen: dict[str, list[Load]] = {}
            for _ in range(rounds):
                for part in ("cached", "native", "stub", "copies", "python"):
                    path = f"/v2/models/{name}_{'onnxruntime' if part in FORMS else part}/infer"
                    file = request_file(work / f"{name}-{part}", path, request.headers, request.body)
                    asked = native if part == "native" else triton
                    generator = Generator(asked.port, pid=asked.pid)
                    if part not in seen:
                        generator.run(file, 1, 0.3)
                    seen.setdefault(part, []).append(generator.run(file, 1, seconds))
            alone = {"session": bare(model, onnx[name], False), "session and joining": bare(model, onnx[name], True)}
            rows += [{"model": name, "part": part, "p50_ms": round(value, 3)} for part, value in alone.items()]
            before = 0.0
            for part, loads in seen.items():
                p50 = statistics.median(load.p50_ms for load in loads)
                rows.append(
                    {
                        "model": name,
                        "part": part,
                        "p50_ms": round(p50, 3),
                        "adds_ms": "" if part in ("cached", "native") else round(p50 - before, 3),
                        "cpu_us": middle([load.cpu_us for load in loads], 0),
                        "spread": round(spread([load.p50_ms for load in loads]), 2),
                        "failed": sum(load.failed for load in loads),
                    }
                )
                if part != "native":
                    before = 0.0 if part == "cached" else p50
    return rows


def starts(work: Path, onnx: dict[str, Path], rounds: int) -> list[dict[str, Any]]:
    """From the start of the process until it is ready, and what it takes until then."""
    root = work / "starts"
    tritons.write_model(root, "picture", {"model.onnx": onnx["picture"]}, 'backend: "onnxruntime"\n')
    seen: dict[str, list[tuple[float, float, float]]] = {form: [] for form in FORMS}
    for _ in range(rounds):
        for form, figures in seen.items():
            began = time.perf_counter()
            with tritons.running(work, root, form=form) as triton:
                figures.append((time.perf_counter() - began, machine.cpu_seconds(triton.pid), triton.memory_mb))
    return [
        {
            "form": form,
            "ready_s": middle([one[0] for one in figures], 2),
            "spread": round(spread([one[0] for one in figures]), 2),
            "cpu_s": middle([one[1] for one in figures], 2),
            "memory_mb": middle([one[2] for one in figures], 0),
        }
        for form, figures in seen.items()
    ]


def settings() -> dict[str, str]:
    """config.pbtxt by what it chooses."""
    cores = len(machine.cores())
    found = {"as it comes": ""}
    for copies in sorted({1, 2, cores}):
        for threads in sorted({1, cores}):
            found[f"{copies} instances, {threads} threads"] = (
                f"instance_group [{{ kind: KIND_CPU count: {copies} }}]\n"
                f'parameters {{ key: "intra_op_thread_count" value {{ string_value: "{threads}" }} }}\n'
            )
    return found


def choices(work: Path, onnx: dict[str, Path], seconds: float, rounds: int) -> list[dict[str, Any]]:
    """Throughput of each setting, all in one Triton; those that wait cost memory and nothing
    else."""
    chosen = settings()
    root = work / "choices"
    for name in MODELS:
        for number, text in enumerate(chosen.values()):
            given = f'backend: "onnxruntime"\n{text}' if text else ""
            tritons.write_model(root, f"{name}_{number}", {"model.onnx": onnx[name]}, given)
    seen: dict[tuple[str, int, str], list[Load]] = {}
    with tritons.running(work, root) as triton:
        for turn in range(rounds):
            for name, model in MODELS.items():
                request = model.request()
                for connections in (1, 8):
                    for number, what in enumerate(chosen):
                        path = f"/v2/models/{name}_{number}/infer"
                        file = request_file(work / f"{name}-{number}", path, request.headers, request.body)
                        generator = Generator(triton.port, pid=triton.pid)
                        if turn == 0:
                            generator.run(file, connections, 0.3)
                        load = generator.run(file, connections, seconds)
                        seen.setdefault((name, connections, what), []).append(load)
    return [
        {
            "model": name,
            "connections": connections,
            "setting": what,
            "rps": middle([load.rps for load in loads], 0),
            "spread": round(spread([load.rps for load in loads]), 2),
            "p50_ms": middle([load.p50_ms for load in loads], 3),
            "p99_ms": middle([load.p99_ms for load in loads], 3),
            "cpu_us": middle([load.cpu_us for load in loads], 0),
            "failed": sum(load.failed for load in loads),
        }
        for (name, connections, what), loads in seen.items()
    ]


def run(work: Path, *, seconds: float, rounds: int) -> Report:
    onnx = files(work)
    return Report(
        {
            "one request at a time, part by part": layers(work, onnx, seconds, rounds),
            "starts": starts(work, onnx, rounds),
            "instances and threads": choices(work, onnx, seconds, rounds),
        },
        notes=("a part's adds_ms is what it takes longer than the part before it",),
    )
