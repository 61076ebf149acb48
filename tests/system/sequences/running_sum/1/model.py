"""Adds up the numbers of each sequence, and says by a random number which process it is, since its
pid may be that of another instance too. Its memory is the only state."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args: Any) -> None:
        self.sums: dict[int, Any] = {}
        self.worker = random.SystemRandom().randrange(2**31)

    def execute(self, requests: Any) -> Any:
        return [self.answer(request) for request in requests]

    def answer(self, request: Any) -> Any:
        number, start, sequence = (
            pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("x", "START", "ID")
        )
        before = 0 if start.flat[0] else self.sums[int(sequence.flat[0])]
        self.sums[int(sequence.flat[0])] = before + number
        worker = np.full_like(number, self.worker)
        return pb_utils.InferenceResponse([pb_utils.Tensor("sum", before + number), pb_utils.Tensor("worker", worker)])
