"""What both forms of the backend decide, each behind one function, so that the same rows hold for
both."""

from __future__ import annotations

import ctypes
import functools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from amphitrite.dataplane.triton import native_backend
from amphitrite.dataplane.triton.backends.onnxruntime import completion, session
from amphitrite.dataplane.triton.backends.onnxruntime.completion import Completion
from amphitrite.dataplane.triton.backends.onnxruntime.sequences import State
from amphitrite.dataplane.triton.backends.onnxruntime.tensors import Tensor
from amphitrite.schemas.errors import Error

Complete = Callable[[Mapping[str, Any], Sequence[Tensor]], Completion]


def native(config: Mapping[str, Any], tensors: Sequence[Tensor]) -> Completion:
    """As ``completion.complete``, by the compiled backend, of which no server is needed."""
    declared = json.dumps([asdict(tensor) for tensor in tensors])
    answer = json.loads(_library().amphitrite_complete(json.dumps(config).encode(), declared.encode()))
    if "error" in answer:
        raise Error("UserError", answer["error"])
    states = tuple(State(one["input"], one["output"], bool(one["zero"])) for one in answer["states"])
    return Completion(
        answer["max_batch_size"], tuple(answer["inputs"]), tuple(answer["outputs"]), answer["remark"], states
    )


def native_overflows(cpuinfo: Iterable[str]) -> bool:
    """As ``session.overflows``, by the compiled backend."""
    return bool(_library().amphitrite_overflows("".join(cpuinfo).encode()))


@functools.cache
def _library() -> ctypes.CDLL:
    found = native_backend.find({**os.environ, native_backend.VARIABLE: "native"})
    assert found is not None
    library = ctypes.CDLL(str(found.library))
    library.amphitrite_complete.restype = ctypes.c_char_p
    library.amphitrite_overflows.restype = ctypes.c_bool
    return library


BOTH: Mapping[str, Complete] = {"native": native, "python": completion.complete}
OVERFLOWS: Mapping[str, Callable[[Iterable[str]], bool]] = {"native": native_overflows, "python": session.overflows}
