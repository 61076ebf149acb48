"""Answers once for each number of ``IN``, after so many milliseconds of ``DELAY``; takes the next
request after ``WAIT`` milliseconds."""

import threading

import numpy as np
import triton_python_backend_utils as triton


def pause(milliseconds):
    threading.Event().wait(int(milliseconds) / 1000)


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            numbers, delays, wait = (
                triton.get_input_tensor_by_name(request, name).as_numpy().reshape(-1)
                for name in ("IN", "DELAY", "WAIT")
            )
            arguments = (request.get_response_sender(), numbers, delays)
            threading.Thread(target=self._answer, args=arguments, daemon=True).start()
            pause(wait[0])

    def _answer(self, sender, numbers, delays):
        for number, delay in zip(numbers, delays, strict=True):
            pause(delay)
            sender.send(triton.InferenceResponse([triton.Tensor("OUT", np.array([number], np.int32))]))
        sender.send(flags=triton.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
