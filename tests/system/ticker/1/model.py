"""One answer every 20 ms, as many as are asked for: a stream that lasts."""

import threading

import numpy as np
import triton_python_backend_utils as triton


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            count = int(triton.get_input_tensor_by_name(request, "count").as_numpy()[0])
            threading.Thread(target=self._tick, args=(request.get_response_sender(), count)).start()

    def _tick(self, sender, count):
        pause = threading.Event()
        for left in range(count - 1, -1, -1):
            sender.send(triton.InferenceResponse([triton.Tensor("left", np.array([left], np.int32))]))
            pause.wait(0.02)
        sender.send(flags=triton.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
