"""Says which version it is. The model of every `versions_*`, in versions 1 and 2."""

import numpy as np
import triton_python_backend_utils as triton


class TritonPythonModel:
    def initialize(self, args):
        self._version = np.array([int(args["model_version"])], np.int32)

    def execute(self, requests):
        return [triton.InferenceResponse([triton.Tensor("version", self._version)]) for _ in requests]
