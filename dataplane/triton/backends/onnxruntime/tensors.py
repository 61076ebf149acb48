"""The tensor types that ONNX Runtime and Triton share, and the values that cross between them.

Decides the names of a type on both sides, and that strings are bytes towards Triton. Must not know
models, requests or batching.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from amphitrite.schemas.errors import Error

Array = npt.NDArray[Any]
Dimension = int | str | None

#: ONNX Runtime's name -> (the name in Triton's configuration, the NumPy type on both sides).
TYPES: Mapping[str, tuple[str, type]] = {
    "tensor(bool)": ("TYPE_BOOL", np.bool_),
    "tensor(uint8)": ("TYPE_UINT8", np.uint8),
    "tensor(uint16)": ("TYPE_UINT16", np.uint16),
    "tensor(uint32)": ("TYPE_UINT32", np.uint32),
    "tensor(uint64)": ("TYPE_UINT64", np.uint64),
    "tensor(int8)": ("TYPE_INT8", np.int8),
    "tensor(int16)": ("TYPE_INT16", np.int16),
    "tensor(int32)": ("TYPE_INT32", np.int32),
    "tensor(int64)": ("TYPE_INT64", np.int64),
    "tensor(float16)": ("TYPE_FP16", np.float16),
    "tensor(float)": ("TYPE_FP32", np.float32),
    "tensor(double)": ("TYPE_FP64", np.float64),
    "tensor(string)": ("TYPE_STRING", np.object_),
}


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output as the model declares it.

    ``kind`` is ``input`` or ``output``. A dimension is a number, a symbol, or None where the model
    leaves it unnamed.
    """

    kind: str
    name: str
    type: str
    shape: tuple[Dimension, ...]

    def __str__(self) -> str:
        return f"{self.kind} '{self.name}' {self.type} {format_shape(self.shape)}"


def triton_type(tensor: Tensor) -> str:
    """``TYPE_FP32`` and so on. Raises Error("UserError") for a type that NumPy and Triton's Python
    interface do not have."""
    try:
        return TYPES[tensor.type][0]
    except KeyError:
        raise Error(
            "UserError",
            f"{tensor.kind} '{tensor.name}' has the type {tensor.type}, which cannot be served",
            hint=_hint(tensor),
        ) from None


def _hint(tensor: Tensor) -> str:
    if not tensor.type.startswith("tensor("):
        return "export it with tensors only (skl2onnx: zipmap=False), or list the wanted outputs in config.pbtxt"
    return f"cast it in the model to one of: {', '.join(sorted(TYPES))}"


def format_shape(shape: tuple[Dimension, ...]) -> str:
    """``[N,3,?]``: symbols as they are, an unnamed dimension as a question mark."""
    return "[" + ",".join("?" if d is None else str(d) for d in shape) + "]"


def from_triton(tensor: Tensor, value: Array) -> Array:
    """A value for ``tensor``, a scalar without its one dimension.

    Raises Error("UserError") unless ``value`` has the declared type, rank and fixed dimensions.
    """
    expected = TYPES[tensor.type][1]
    if value.dtype != expected:
        actual = "STRING" if value.dtype == np.object_ else value.dtype.name
        raise Error("UserError", f"input '{tensor.name}' is {actual}, expected {tensor.type}")
    if not tensor.shape and value.shape == (1,):
        return value.reshape(())
    fits = len(value.shape) == len(tensor.shape) and all(
        not isinstance(d, int) or d == n for d, n in zip(tensor.shape, value.shape, strict=False)
    )
    if not fits:
        actual = format_shape(value.shape)
        raise Error("UserError", f"input '{tensor.name}' has the shape {actual}, expected {format_shape(tensor.shape)}")
    return _decoded(tensor, value) if value.dtype == np.object_ else value


def _decoded(tensor: Tensor, value: Array) -> Array:
    """Bytes as text: ONNX Runtime's Python interface would take the bytes ``a`` for the text
    ``b'a'``."""
    decoded = np.empty(value.shape, dtype=np.object_)
    flat = decoded.reshape(-1)
    try:
        for index, item in enumerate(value.reshape(-1)):
            flat[index] = item.decode()
    except UnicodeDecodeError as exc:
        raise Error("UserError", f"input '{tensor.name}' holds a string that is not UTF-8: {exc}") from exc
    return decoded


def to_triton(value: Array) -> Array:
    """An output of ONNX Runtime in Triton's form: with a dimension, in C order, strings as
    bytes."""
    value = np.ascontiguousarray(value)  # It also makes a scalar one-dimensional.
    if value.dtype != np.object_:
        return value
    encoded = np.empty(value.shape, dtype=np.object_)
    flat = encoded.reshape(-1)
    for index, item in enumerate(value.reshape(-1)):
        flat[index] = str(item).encode()
    return encoded
