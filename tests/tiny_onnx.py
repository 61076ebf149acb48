"""The smallest ONNX files, for tests in which nobody runs them.

Decides their bytes, without ONNX: ``y = x`` (FP32, [N, 4]), told apart by a text that they carry.
"""

from __future__ import annotations

#: TypeProto of a tensor of FLOAT with the dimensions N and 4.
_TYPE = b"\x0a\x0d\x08\x01\x12\x09\x0a\x03\x12\x01N\x0a\x02\x08\x04"


def tiny(text: str) -> bytes:
    """An ONNX file whose ``doc_string`` is ``text``."""
    node = _field(1, b"x") + _field(2, b"y") + _field(4, b"Identity")
    graph = _field(1, node) + _field(2, b"tiny") + _field(11, _value(b"x")) + _field(12, _value(b"y"))
    return b"\x08\x08" + _field(6, text.encode()) + _field(7, graph) + _field(8, b"\x10\x11")


def _value(name: bytes) -> bytes:
    return _field(1, name) + _field(2, _TYPE)


def _field(number: int, content: bytes) -> bytes:
    length, size = b"", len(content)
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content
