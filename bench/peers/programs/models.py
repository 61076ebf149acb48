"""What all of the programs share: their arguments, and a session for each file. Runs in each
program's environment."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]


def arguments() -> tuple[int, int, dict[str, str]]:
    """(port, threads, model name -> file)"""
    port, threads, *models = sys.argv[1:]
    return int(port), int(threads), dict(model.split("=", 1) for model in models)


class Model:
    """Bytes of one FP32 tensor in, bytes of the first output out."""

    def __init__(self, file: str, threads: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        given = self._session.get_inputs()[0]
        self._name, self._shape = given.name, [n if isinstance(n, int) else -1 for n in given.shape]

    def run(self, tensor: bytes) -> bytes:
        array = np.frombuffer(tensor, np.float32).reshape(self._shape)
        outputs: list[Any] = self._session.run(None, {self._name: array})
        return bytes(outputs[0].tobytes())
