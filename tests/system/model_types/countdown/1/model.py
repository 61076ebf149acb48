"""Counts down, one answer for each number. After the first it waits until another request asks to count from 0."""

import threading

import numpy as np
import triton_python_backend_utils as triton


class TritonPythonModel:
    def initialize(self, args):
        self._go_on = threading.Event()

    def execute(self, requests):
        for request in requests:
            number = int(triton.get_input_tensor_by_name(request, "from").as_numpy()[0])
            if number == 0:
                self._go_on.set()
            threading.Thread(target=self._count, args=(request.get_response_sender(), number), daemon=True).start()

    def _count(self, sender, number):
        for left in range(number, -1, -1):
            sender.send(triton.InferenceResponse([triton.Tensor("left", np.array([left], np.int32))]))
            if left:
                self._go_on.wait(30)
        sender.send(flags=triton.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
