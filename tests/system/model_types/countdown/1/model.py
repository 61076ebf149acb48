"""Counts down, one answer for each number. After the first it waits until another request asks to
count from 0."""

import threading

import numpy as np
import triton_python_backend_utils as triton


class TritonPythonModel:
    def initialize(self, args):
        self._go_on = threading.Event()

    def execute(self, requests):
        for request in requests:
            number = int(triton.get_input_tensor_by_name(request, "from").as_numpy()[0])
            go_on = self._go_on
            if number == 0:
                # Those that wait now go on; whoever comes later waits for the next such request.
                self._go_on = threading.Event()
                go_on.set()
            arguments = (request.get_response_sender(), number, go_on)
            threading.Thread(target=self._count, args=arguments, daemon=True).start()

    def _count(self, sender, number, go_on):
        for left in range(number, -1, -1):
            sender.send(triton.InferenceResponse([triton.Tensor("left", np.array([left], np.int32))]))
            if left:
                go_on.wait(30)
        sender.send(flags=triton.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
