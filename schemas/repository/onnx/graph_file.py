"""Reads the inputs, outputs, operators and external weights of an ONNX file, without ONNX.

Decides which parts of a file are read; weights are skipped. Must not know Triton. Outside contract:
``onnx.proto``, messages ModelProto, GraphProto, NodeProto, TensorProto, ValueInfoProto and
TypeProto.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from amphitrite.schemas.repository.onnx.protobuf_wire import Damaged, Span, Walker, signed

#: TensorProto.DataType -> Triton's name, for the types that Triton supports.
TYPES: Mapping[int, str] = {
    1: "TYPE_FP32", 2: "TYPE_UINT8", 3: "TYPE_INT8", 4: "TYPE_UINT16", 5: "TYPE_INT16", 6: "TYPE_INT32",
    7: "TYPE_INT64", 8: "TYPE_STRING", 9: "TYPE_BOOL", 10: "TYPE_FP16", 11: "TYPE_FP64", 12: "TYPE_UINT32",
    13: "TYPE_UINT64",
}  # fmt: skip
_OTHER_TYPES = {0: "undefined", 14: "complex64", 15: "complex128", 16: "bfloat16"}
_KINDS = {4: "a sequence", 5: "a map", 8: "a sparse tensor", 9: "an optional value"}

Dimension = int | str | None


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output.

    ``type``: Triton's name; None if Triton does not support the type, which ``type_word`` then
    describes. ``shape``: numbers, symbols, and None for an unnamed dimension; () for a scalar; None
    if it is not given.
    """

    kind: str
    name: str
    type: str | None
    type_word: str
    shape: tuple[Dimension, ...] | None

    def __str__(self) -> str:
        return f"{self.kind} `{self.name}` {self.type_word} {format_shape(self.shape)}"


@dataclass(frozen=True, slots=True)
class Weights:
    """A tensor with its data in another file.

    ``location``: relative to the model's directory. ``offset`` and ``length``: in bytes.
    """

    name: str
    location: str
    offset: int
    length: int | None


@dataclass(slots=True)
class Graph:
    """The content of an ONNX file.

    ``inputs``: without initializers, which have a value. ``operators``: (domain, name) -> number of
    nodes. ``undefined``: values that are used and not produced. ``functions``: (domain, name) of
    operators that the file defines. ``external``: tensors with their data in other files.
    """

    ir_version: int = 0
    opsets: dict[str, int] = field(default_factory=dict)
    has_graph: bool = False
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    operators: dict[tuple[str, str], int] = field(default_factory=dict)
    functions: set[tuple[str, str]] = field(default_factory=set)
    undefined: list[str] = field(default_factory=list)
    external: list[Weights] = field(default_factory=list)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return self.inputs + self.outputs


def read(stream: BinaryIO, size: int) -> Graph:
    """Read a file of ``size`` bytes. Raises Damaged (not ONNX, or truncated), TooMuch, OSError."""
    walker, graph = Walker(stream, size), Graph()
    for number, value in walker.fields(walker.file_span):
        if number == 1 and isinstance(value, int):
            graph.ir_version = signed(value)
        elif number == 7 and isinstance(value, Span):
            graph.has_graph = True
            _graph(walker, value, graph)
        elif number == 8 and isinstance(value, Span):
            parts = _parts(walker, value, texts={1}, numbers={2})
            graph.opsets[str(parts.get(1, ""))] = signed(int(parts.get(2, 0)))
        elif number == 25 and isinstance(value, Span):
            parts = _parts(walker, value, texts={1, 10}, numbers=set())
            graph.functions.add((str(parts.get(10, "")), str(parts.get(1, ""))))
    return graph


def format_shape(shape: tuple[Dimension, ...] | None) -> str:
    """The shape as text: ``[N,3,?]``, with a question mark for an unnamed dimension."""
    return "of any shape" if shape is None else "[" + ",".join("?" if d is None else str(d) for d in shape) + "]"


def _graph(walker: Walker, span: Span, graph: Graph) -> None:
    initialized: set[str] = set()
    produced: set[str] = set()
    used: dict[str, None] = {}
    inputs: list[Tensor] = []
    outputs: list[Tensor] = []
    for number, value in walker.fields(span):
        if not isinstance(value, Span):
            continue
        if number == 1:
            _node(walker, value, graph, produced, used)
        elif number == 5:
            initialized.add(_initializer(walker, value, graph))
        elif number == 15:
            for part, inner in walker.fields(value):
                if part == 1 and isinstance(inner, Span):
                    initialized.add(_initializer(walker, inner, graph))
        elif number in (11, 12):
            (inputs if number == 11 else outputs).append(_value(walker, value, "input" if number == 11 else "output"))
    graph.inputs = tuple(tensor for tensor in inputs if tensor.name not in initialized)
    graph.outputs = tuple(outputs)
    known = initialized | produced | {tensor.name for tensor in inputs}
    graph.undefined = [name for name in used if name and name not in known]
    graph.undefined += [tensor.name for tensor in outputs if tensor.name not in known]


def _node(walker: Walker, span: Span, graph: Graph, produced: set[str], used: dict[str, None]) -> None:
    operator, domain = "", ""
    for number, value in walker.fields(span):
        if not isinstance(value, Span):
            continue
        if number == 1:
            used.setdefault(walker.text(value))
        elif number == 2:
            produced.add(walker.text(value))
        elif number == 4:
            operator = walker.text(value)
        elif number == 7:
            domain = walker.text(value)
    graph.operators[domain, operator] = graph.operators.get((domain, operator), 0) + 1


def _initializer(walker: Walker, span: Span, graph: Graph) -> str:
    """Return the name of an initializer; note external data in ``graph.external``."""
    name, data_location = "", 0
    entries: dict[str, str] = {}
    for number, value in walker.fields(span):
        if number == 8 and isinstance(value, Span):
            name = walker.text(value)
        elif number == 13 and isinstance(value, Span):
            parts = _parts(walker, value, texts={1, 2}, numbers=set())
            entries[str(parts.get(1, ""))] = str(parts.get(2, ""))
        elif number == 14 and isinstance(value, int):
            data_location = value
    if data_location == 1:
        offset, length = entries.get("offset", "0"), entries.get("length", "")
        graph.external.append(
            Weights(
                name, entries.get("location", ""), int(offset) if offset.isdecimal() else 0,
                int(length) if length.isdecimal() else None,
            )
        )  # fmt: skip
    return name


def _value(walker: Walker, span: Span, kind: str) -> Tensor:
    name, word, element = "", "", None
    shape: tuple[Dimension, ...] | None = None
    for number, value in walker.fields(span):
        if number == 1 and isinstance(value, Span):
            name = walker.text(value)
        elif number == 2 and isinstance(value, Span):
            for which, inner in walker.fields(value):
                if which == 1 and isinstance(inner, Span):
                    element, shape = _tensor_type(walker, inner)
                    word = _OTHER_TYPES.get(element, f"type {element}")
                elif which in _KINDS:
                    word = _KINDS[which]
    type_ = TYPES.get(element) if element is not None else None
    return Tensor(kind, name, type_, type_ or word or "without a type", shape)


def _tensor_type(walker: Walker, span: Span) -> tuple[int, tuple[Dimension, ...] | None]:
    element, shape = 0, None
    for number, value in walker.fields(span):
        if number == 1 and isinstance(value, int):
            element = value
        elif number == 2 and isinstance(value, Span):
            shape = tuple(
                _dimension(walker, inner)
                for part, inner in walker.fields(value)
                if part == 1 and isinstance(inner, Span)
            )
    return element, shape


def _dimension(walker: Walker, span: Span) -> Dimension:
    parts = _parts(walker, span, texts={2}, numbers={1})
    if 1 in parts:
        number = signed(int(parts[1]))
        return number if number >= 0 else None
    return str(parts[2]) or None if 2 in parts else None


def _parts(walker: Walker, span: Span, *, texts: set[int], numbers: set[int]) -> dict[int, str | int]:
    """The last value of each of these fields."""
    values: dict[int, str | int] = {}
    for number, value in walker.fields(span):
        if number in texts and isinstance(value, Span):
            values[number] = walker.text(value)
        elif number in numbers and isinstance(value, int):
            values[number] = value
    return values


__all__ = ["TYPES", "Damaged", "Dimension", "Graph", "Tensor", "Weights", "format_shape", "read"]
