"""The tensors of an answer: their datatypes, and their elements as numbers or texts.

Decides how binary tensor data becomes elements, piece by piece: a tensor of a million numbers is
never a million objects at once. Must not know how tensors are compared. Sources: KServe's page
"Open Inference Protocol (V2)", Triton's "Binary Tensor Data Extension".
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

#: Bytes and ``struct``'s letter of one element, by datatype.
_FORMATS = {
    "BOOL": (1, "B"),
    "UINT8": (1, "B"),
    "UINT16": (2, "H"),
    "UINT32": (4, "I"),
    "UINT64": (8, "Q"),
    "INT8": (1, "b"),
    "INT16": (2, "h"),
    "INT32": (4, "i"),
    "INT64": (8, "q"),
    "FP16": (2, "e"),
    "FP32": (4, "f"),
    "FP64": (8, "d"),
    "BF16": (2, "H"),
}
#: Each element is preceded by its length: four bytes, little-endian.
BYTES = "BYTES"
_LENGTH = struct.Struct("<I")
#: The datatypes among whose elements a largest one means something.
_RANKED = frozenset(_FORMATS) - {"BOOL"}
_NUMBERS = frozenset({bool, int, float})
_DIMENSIONS_MAX = 64
_ELEMENTS_MAX = 2**40

Number = float | int


@dataclass(frozen=True, slots=True)
class Tensor:
    """One output. ``content``: its elements as binary data, or as JSON has them (texts for
    ``BYTES``), flat and in row-major order."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    content: bytes | Sequence[Number] | Sequence[str]

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def numeric(self) -> bool:
        return self.datatype != BYTES

    @property
    def row(self) -> int:
        """The length of the last axis."""
        return self.shape[-1] if self.shape else 1

    @property
    def ranked(self) -> bool:
        """Whether the largest element of a row means something."""
        return self.datatype in _RANKED and self.row > 1

    def numbers(self, start: int, end: int) -> Sequence[Number]:
        """The elements from ``start`` to before ``end``, of a numeric tensor."""
        if not isinstance(self.content, bytes):
            return tuple(self.content[start:end])  # type: ignore[arg-type]
        width, letter = _FORMATS[self.datatype]
        data = self.content[start * width : end * width]
        if self.datatype == "BF16":
            # The upper half of a number in FP32.
            wide = bytearray(2 * len(data))
            wide[2::4], wide[3::4] = data[0::2], data[1::2]
            data, letter = bytes(wide), "f"
        return struct.unpack(f"<{end - start}{letter}", data)

    def texts(self) -> Sequence[bytes]:
        """The elements of a tensor of ``BYTES``."""
        if not isinstance(self.content, bytes):
            return [str(text).encode("utf-8", "surrogatepass") for text in self.content]
        return _texts(self.content)


def tensor(name: str, datatype: str, shape: Sequence[int], content: bytes | Sequence[object]) -> Tensor:
    """The tensor, if ``content`` has as many elements of this type as ``shape`` says. Raises
    ValueError, with a sentence, otherwise."""
    if datatype not in _FORMATS and datatype != BYTES:
        raise ValueError(f"output {name!r} has the datatype {datatype!r}, which is none of KServe V2")
    if len(shape) > _DIMENSIONS_MAX or any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in shape):
        raise ValueError(f"output {name!r} has no shape")
    size = prod(shape)
    if size > _ELEMENTS_MAX or size != _count(name, datatype, content):
        raise ValueError(f"output {name!r} has another number of elements than its shape says")
    return Tensor(name, datatype, tuple(shape), content)  # type: ignore[arg-type]


def _count(name: str, datatype: str, content: bytes | Sequence[object]) -> int:
    if isinstance(content, bytes):
        if datatype == BYTES:
            return len(_texts(content))
        width, _ = _FORMATS[datatype]
        if len(content) % width:
            raise ValueError(f"output {name!r} ends within an element")
        return len(content) // width
    allowed = {str} if datatype == BYTES else _NUMBERS
    if not allowed.issuperset(map(type, content)):
        raise ValueError(f"output {name!r} has elements that are not of the datatype {datatype}")
    return len(content)


def _texts(content: bytes) -> list[bytes]:
    texts, at = [], 0
    while at < len(content):
        start = at + _LENGTH.size
        if start > len(content):
            raise ValueError("an element of BYTES has no length")
        at = start + _LENGTH.unpack_from(content, at)[0]
        if at > len(content):
            raise ValueError("an element of BYTES is longer than its tensor")
        texts.append(content[start:at])
    return texts
