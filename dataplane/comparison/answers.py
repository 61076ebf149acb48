"""Reads a model server's answer: the body becomes tensors.

Decides what counts as an answer of KServe V2, in JSON alone or with Triton's binary tensor data
after it. Must not know what the tensors are compared with. Sources: KServe's page "Open Inference
Protocol (V2)", Triton's "Binary Tensor Data Extension".
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from amphitrite.dataplane.comparison.answer_tensors import Tensor, tensor

#: The response header with the length of the JSON before binary tensor data.
JSON_LENGTH = "inference-header-content-length"
#: Above that, an answer is not looked at.
BODY_MAX = 4 * 1024 * 1024
#: Outputs of one answer.
_OUTPUTS_MAX = 256
#: ``wbits`` of zlib by content coding. What Triton calls deflate is what RFC 9110 says: zlib's
#: form.
_CODINGS = {"gzip": 31, "deflate": 15}


def decoded(body: bytes, coding: str) -> bytes:
    """``body`` without its content coding (RFC 9110); an empty one is none. Raises ValueError when
    it cannot be read, or has more than ``BODY_MAX`` bytes."""
    if coding in ("", "identity"):
        return body
    if coding not in _CODINGS:
        raise ValueError(f"the content coding {coding[:40]!r} is not read")
    reader = zlib.decompressobj(_CODINGS[coding])
    try:
        content = reader.decompress(body, BODY_MAX)
    except zlib.error as exc:
        raise ValueError(f"the body is not {coding}: {exc}") from exc
    if not reader.eof:
        raise ValueError(f"the body is larger than {BODY_MAX} bytes, or incomplete")
    return content


def parse(body: bytes, json_length: str = "") -> tuple[Tensor, ...]:
    """The outputs of an answer, sorted by name. ``json_length``: the value of ``JSON_LENGTH``;
    empty: there is none. Raises ValueError, with a sentence, when the body is no such answer."""
    text, binary = body, b""
    if json_length:
        if not json_length.isdecimal() or int(json_length) > len(body):
            raise ValueError(f"the header {JSON_LENGTH} is not a length within the body")
        text, binary = body[: int(json_length)], body[int(json_length) :]
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ValueError("the answer is not JSON") from exc
    outputs = answer.get("outputs") if isinstance(answer, dict) else None
    if not isinstance(outputs, list) or len(outputs) > _OUTPUTS_MAX:
        raise ValueError("the answer has no list of outputs")
    tensors, at = [], 0
    for output in outputs:
        size = _binary_size(output)
        content = _data(output) if size is None else binary[at : at + size]
        at += size or 0
        if at > len(binary):
            raise ValueError("the body ends before its binary data")
        tensors.append(tensor(_text(output, "name"), _text(output, "datatype"), _list(output, "shape"), content))
    if at != len(binary):
        raise ValueError("the body has bytes after its binary data")
    tensors.sort(key=lambda one: one.name)
    if len({one.name for one in tensors}) != len(tensors):
        raise ValueError("two outputs have one name")
    return tuple(tensors)


def _binary_size(output: object) -> int | None:
    """How many bytes of binary data belong to the output; None: its elements are in the JSON."""
    parameters = output.get("parameters") if isinstance(output, Mapping) else None
    size = parameters.get("binary_data_size") if isinstance(parameters, Mapping) else None
    if size is None:
        return None
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= BODY_MAX:
        raise ValueError("binary_data_size is not a size")
    return size


def _data(output: Any) -> Sequence[object]:
    """The elements, flat. Lists within each other are allowed, down to the shape's depth."""
    data = _list(output, "data")
    for _ in _list(output, "shape"):
        if not data or not isinstance(data[0], list):
            break
        if not all(isinstance(item, list) for item in data):
            raise ValueError("the data of an output is not of one depth")
        data = [element for item in data for element in item]
    return data


def _list(output: Any, name: str) -> list[Any]:
    value = output.get(name) if isinstance(output, Mapping) else None
    if not isinstance(value, list):
        raise ValueError(f"an output has no list {name!r}")
    return value


def _text(output: Any, name: str) -> str:
    value = output.get(name) if isinstance(output, Mapping) else None
    if not isinstance(value, str):
        raise ValueError(f"an output has no text {name!r}")
    return value
