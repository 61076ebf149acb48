"""The two models that are served in benchmarks, and a request for each.

``tiny`` is ``y = x`` on four numbers: all that is measured is the way there and back. ``picture``
is the example's EfficientNet-Lite0 on one 224 x 224 picture (602 kB).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tritonclient.http as triton

from bench.product import EXAMPLE
from tests.tiny_onnx import tiny


@dataclass(frozen=True, slots=True)
class Request:
    """``headers`` and ``body`` are the V2 protocol's with binary tensors; ``tensor`` is the input
    alone."""

    headers: tuple[str, ...]
    body: bytes
    tensor: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Model:
    input: str
    output: str
    shape: tuple[int, ...]
    results: int  #: numbers in the output

    def request(self) -> Request:
        tensor = np.random.default_rng(0).uniform(-1, 1, self.shape).astype(np.float32)
        given = triton.InferInput(self.input, list(self.shape), "FP32")
        given.set_data_from_numpy(tensor, binary_data=True)
        wanted = triton.InferRequestedOutput(self.output, binary_data=True)
        body, length = triton.InferenceServerClient.generate_request_body([given], outputs=[wanted])
        return Request((f"Inference-Header-Content-Length: {length}",), body, tensor)


MODELS = {"tiny": Model("x", "y", (1, 4), 4), "picture": Model("data_0", "fc6_1", (1, 3, 224, 224), 1000)}


def files(directory: Path) -> dict[str, Path]:
    """The ONNX file of each."""
    small = directory / "tiny.onnx"
    small.write_bytes(tiny("for benchmarks"))
    return {"tiny": small, "picture": EXAMPLE / "models" / "model_1" / "1" / "model.onnx"}
