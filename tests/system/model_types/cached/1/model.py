"""Says how often it has run: an answer from the cache says the same again."""

import numpy as np
import triton_python_backend_utils as triton


class TritonPythonModel:
    def initialize(self, args):
        self._executions = 0

    def execute(self, requests):
        answers = []
        for _ in requests:
            self._executions += 1
            count = triton.Tensor("executions", np.array([self._executions], np.int32))
            answers.append(triton.InferenceResponse([count]))
        return answers
