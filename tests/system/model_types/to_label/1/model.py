"""Names the highest score, by the labels among its own parameters."""

import json

import numpy as np
import triton_python_backend_utils as triton


class TritonPythonModel:
    def initialize(self, args):
        labels = json.loads(args["model_config"])["parameters"]["labels"]["string_value"].split(",")
        self._labels = np.array([label.encode() for label in labels], np.object_)

    def execute(self, requests):
        answers = []
        for request in requests:
            scores = triton.get_input_tensor_by_name(request, "scores").as_numpy()
            labels = self._labels[scores.argmax(axis=1)].reshape(-1, 1)
            answers.append(triton.InferenceResponse([triton.Tensor("label", labels)]))
        return answers
