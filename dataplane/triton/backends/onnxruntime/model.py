"""The ``onnxruntime`` backend that Triton's Python interface calls, inside Triton's stub process.

Decides how Triton's objects become arrays and back. Must not know how a configuration is completed,
requests are joined or a sequence's state is kept. Triton finds this file as
``<backend directory>/onnxruntime/model.py``. Source: the README of Triton's ``python_backend``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import triton_python_backend_utils as triton  # type: ignore[import-not-found]  # Triton puts it on the path.

from amphitrite.dataplane.triton.backends.onnxruntime import batching, sequences, tensors
from amphitrite.dataplane.triton.backends.onnxruntime.completion import complete
from amphitrite.dataplane.triton.backends.onnxruntime.session import Session
from amphitrite.schemas.errors import Error

#: The flags of a request that starts, and of one that ends, its sequence.
_SEQUENCE_START = triton.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START
_SEQUENCE_END = triton.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A request that can run. ``wanted``: outputs of the client. ``sequence``: its id, 0 or empty
    for none. ``last``: whether it ends the sequence."""

    request: batching.Request
    wanted: tuple[str, ...]
    sequence: int | str
    last: bool


class TritonPythonModel:
    """One copy of one model. Triton starts one process for each."""

    @staticmethod
    def auto_complete_config(auto_complete_model_config: Any) -> Any:
        """Called once for each model, in a process of its own, before any copy is started."""
        config = auto_complete_model_config.as_dict()
        sequences.check_ids(config)
        completion = complete(config, Session(_file_to_complete(), config, None).tensors)
        # The setters of Triton's class do not have `reshape`, and refuse a larger max_batch_size
        # than their own.
        config["input"], config["output"] = list(completion.inputs), list(completion.outputs)
        if completion.max_batch_size:
            config["max_batch_size"] = completion.max_batch_size
            if not config.get("sequence_batching"):
                auto_complete_model_config.set_dynamic_batching()
        # Triton's Logger prints nothing in this process.
        print(f"{config['name']}: {completion.remark}", flush=True)
        return auto_complete_model_config

    def initialize(self, args: Mapping[str, str]) -> None:
        config = json.loads(args["model_config"])
        sequences.check_ids(config)
        path = _model_file(Path(args["model_repository"]), args["model_version"], config)
        device = int(args["model_instance_device_id"]) if args["model_instance_kind"] == "GPU" else None
        self._session = Session(path, config, device)
        completion = complete(config, self._session.tensors)
        self._batching = completion.max_batch_size > 0
        self._inputs = tuple(t for t in self._session.tensors if t.kind == "input")
        self._outputs = tuple(entry["name"] for entry in completion.outputs)
        self._number_id = sequences.number_id(config)
        self._has_sequences = bool(config.get("sequence_batching"))
        self._states = sequences.states_of(config, completion.max_batch_size)
        triton.Logger.log_info(f"engine of {args['model_name']}: {self._session.engine}")

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """One response for each request, in order."""
        parsed = [self._parse(request) for request in requests]
        valid = [t.request for t in parsed if isinstance(t, _Parsed)]
        answers = iter(batching.run_all(self._session.run, valid, batching=self._batching))
        return [self._respond(t, next(answers)) if isinstance(t, _Parsed) else _respond(t) for t in parsed]

    def _parse(self, request: Any) -> _Parsed | batching.Answer:
        wanted = tuple(request.requested_output_names())
        if self._has_sequences and not wanted:
            # An empty slot, which keeps others in their places. ONNX Runtime needs no places.
            return {}
        inputs = {}
        if self._number_id and isinstance(request.correlation_id(), str) and request.correlation_id():
            return Error("UserError", f"input '{self._number_id}' takes numbers, and the sequence's id is a string")
        sequence, flags = request.correlation_id(), request.flags()
        start, last = (bool(flags & flag) for flag in (_SEQUENCE_START, _SEQUENCE_END))
        try:
            for tensor in self._inputs:
                value = triton.get_input_tensor_by_name(request, tensor.name)
                if value is None:
                    return Error("UserError", f"input '{tensor.name}' is missing")
                inputs[tensor.name] = tensors.from_triton(tensor, value.as_numpy())
            inputs |= self._states.begin(sequence, inputs, start=start, now=time.monotonic())
        except Error as error:
            return error
        wanted = wanted or self._outputs
        kept = (state.output for state in self._states.states)
        return _Parsed(batching.Request(inputs, tuple(dict.fromkeys((*wanted, *kept)))), wanted, sequence, last)

    def _respond(self, parsed: _Parsed, answer: batching.Answer) -> Any:
        self._states.end(parsed.sequence, answer, last=parsed.last, now=time.monotonic())
        return _respond(answer if isinstance(answer, Error) else {name: answer[name] for name in parsed.wanted})


def _respond(answer: batching.Answer) -> Any:
    if isinstance(answer, Error):
        return triton.InferenceResponse(error=triton.TritonError(answer.message))
    outputs = [triton.Tensor(name, tensors.to_triton(value)) for name, value in answer.items()]
    return triton.InferenceResponse(output_tensors=outputs)


def _file_to_complete() -> Path:
    """The model's file. Triton gives it only as the first argument of its stub; ``sys.argv`` is
    empty there."""
    arguments = Path("/proc/self/cmdline").read_bytes().split(b"\0")
    return _onnx_file(Path(arguments[1].decode()))


def _model_file(model: Path, version: str, config: Mapping[str, Any]) -> Path:
    return _onnx_file(model / version / (config.get("default_model_filename") or "model.onnx"))


def _onnx_file(path: Path) -> Path:
    """A large model may be a directory ``model.onnx`` with the file of that name and its
    weights."""
    return path / "model.onnx" if path.is_dir() else path
