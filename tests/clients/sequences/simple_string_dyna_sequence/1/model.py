"""Adds up the numbers of each sequence; at its end adds its name, which is a number too."""

import numpy as np
import triton_python_backend_utils as triton


class TritonPythonModel:
    def initialize(self, args):
        self._sums = {}

    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        number, start, end = (
            triton.get_input_tensor_by_name(request, name).as_numpy() for name in ("INPUT", "START", "END")
        )
        name = request.correlation_id()
        found = number if start.flat[0] else self._sums[name] + number
        self._sums[name] = found
        if end.flat[0]:
            del self._sums[name]
            found = found + int(name)
        return triton.InferenceResponse([triton.Tensor("OUTPUT", found.astype(np.int32))])
