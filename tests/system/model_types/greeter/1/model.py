"""Puts a greeting, one of its own parameters, before each name. Counts how often it has run."""

import json

import numpy as np
import triton_python_backend_utils as triton


class TritonPythonModel:
    def initialize(self, args):
        self._greeting = json.loads(args["model_config"])["parameters"]["greeting"]["string_value"]
        self._executions = 0

    def execute(self, requests):
        answers = []
        for request in requests:
            names = triton.get_input_tensor_by_name(request, "name").as_numpy()
            print("greeting", *(name.decode() for name in names))
            greetings = np.array([(self._greeting + name.decode()).encode() for name in names], np.object_)
            count = triton.Tensor("executions", np.array([self._executions], np.int32))
            answers.append(triton.InferenceResponse([triton.Tensor("greeting", greetings), count]))
            self._executions += 1
        return answers
