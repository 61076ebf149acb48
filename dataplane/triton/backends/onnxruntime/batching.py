"""Runs the requests of one call of Triton together where they fit, and alone where they do not.

Decides which requests are joined, how their outputs are split, and that one request's failure does
not affect others. Must not know Triton's objects or ONNX Runtime: arrays and a ``run`` function in,
arrays or an Error for each request out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from amphitrite.dataplane.triton.backends.onnxruntime.tensors import Array
from amphitrite.schemas.errors import Error

#: (names of outputs, inputs) -> these outputs, in that order. Raises Error.
Run = Callable[[Sequence[str], Mapping[str, Array]], Sequence[Array]]


@dataclass(frozen=True, slots=True)
class Request:
    """``inputs``: arrays by name, checked against the model. ``outputs``: the names that are
    wanted."""

    inputs: Mapping[str, Array]
    outputs: tuple[str, ...]


Answer = Mapping[str, Array] | Error


def run_all(run: Run, requests: Sequence[Request], *, batching: bool) -> list[Answer]:
    """One answer for each request, in order.

    With ``batching`` the first dimension of every array is the batch. Requests whose other
    dimensions agree run as one. When that fails, or an output does not keep the batch, each of them
    runs alone.
    """
    answers: dict[int, Answer] = {}
    for group in _groups(requests) if batching else [[i] for i in range(len(requests))]:
        if len(group) > 1:
            joined = _run_joined(run, [requests[i] for i in group])
            if joined is not None:
                answers.update(zip(group, joined, strict=True))
                continue
        for i in group:
            answers[i] = _run_alone(run, requests[i], batching)
    return [answers[i] for i in range(len(requests))]


def _groups(requests: Sequence[Request]) -> list[list[int]]:
    """Indexes of requests that differ only in the first dimension."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for index, request in enumerate(requests):
        shapes = tuple((name, request.inputs[name].shape[1:]) for name in sorted(request.inputs))
        groups.setdefault(shapes, []).append(index)
    return list(groups.values())


def _run_joined(run: Run, requests: Sequence[Request]) -> list[Answer] | None:
    """The answers; None: these requests must run one by one."""
    names = requests[0].inputs
    inputs = {name: np.concatenate([r.inputs[name] for r in requests]) for name in names}
    wanted = tuple(sorted({name for r in requests for name in r.outputs}))
    sizes = [_size(r) for r in requests]
    try:
        outputs = dict(zip(wanted, run(wanted, inputs), strict=True))
    except Error:
        return None
    if any(o.ndim == 0 or o.shape[0] != sum(sizes) for o in outputs.values()):
        return None
    ends = np.cumsum(sizes).tolist()
    return [
        {name: outputs[name][end - size : end] for name in request.outputs}
        for request, size, end in zip(requests, sizes, ends, strict=True)
    ]


def _run_alone(run: Run, request: Request, batching: bool) -> Answer:
    try:
        outputs = dict(zip(request.outputs, run(request.outputs, request.inputs), strict=True))
    except Error as error:
        return error
    for name, output in outputs.items():
        if batching and (output.ndim == 0 or output.shape[0] != _size(request)):
            return Error(
                "ScoringFailed",
                f"output '{name}' has the shape {list(output.shape)} for a batch of {_size(request)}: "
                "this model does not keep the batch, so it needs a config.pbtxt without max_batch_size "
                "that gives the dims of its tensors in full",
            )
    return outputs


def _size(request: Request) -> int:
    """The batch size of a request, which Triton has checked to be the same for all its inputs."""
    return int(next(iter(request.inputs.values())).shape[0])
