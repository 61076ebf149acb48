"""Generates the tables of ``schemas/repository/``.

``config/model_config.json``: the fields of Triton's ModelConfig with their types and enumerations.
``onnx/onnx_operators.json``: the operators of ONNX.

Decides nothing about what is valid: the first is the descriptor that the wheel's own
``tritonserver`` carries, plus the fields that Triton got later (``LATER``), the second the schemas
of the package ``onnx``. Run ``.venv/bin/python docs/model_config_table.py`` after a new wheel; a
test compares the file with the wheel, and ``LATER`` with a newer tritonclient."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

TABLES = Path(__file__).parents[1] / "schemas" / "repository"
TARGET, OPERATORS = TABLES / "config" / "model_config.json", TABLES / "onnx" / "onnx_operators.json"
#: Triton of the wheel.
VERSION = "2.51"
#: Message -> fields that Triton 2.51 does not know and 2.60 does.
LATER: dict[str, dict[str, Any]] = {
    "ModelConfig": {"model_metrics": {"type": "ModelMetrics", "since": "2.60"}},
    "ModelMetrics": {"metric_control": {"type": "ModelMetrics.MetricControl", "repeated": True}},
    "ModelMetrics.MetricControl": {
        "metric_identifier": {"type": "ModelMetrics.MetricControl.MetricIdentifier"},
        "histogram_options": {
            "type": "ModelMetrics.MetricControl.HistogramOptions",
            "oneof": "metric_options",
        },
    },
    "ModelMetrics.MetricControl.MetricIdentifier": {"family": {"type": "string"}},
    "ModelMetrics.MetricControl.HistogramOptions": {"buckets": {"type": "double", "repeated": True}},
}

_SCALARS = {
    FieldDescriptorProto.TYPE_BOOL: "bool",
    FieldDescriptorProto.TYPE_DOUBLE: "double",
    FieldDescriptorProto.TYPE_FLOAT: "float",
    FieldDescriptorProto.TYPE_INT32: "int32",
    FieldDescriptorProto.TYPE_INT64: "int64",
    FieldDescriptorProto.TYPE_STRING: "string",
    FieldDescriptorProto.TYPE_BYTES: "bytes",
    FieldDescriptorProto.TYPE_UINT32: "uint32",
    FieldDescriptorProto.TYPE_UINT64: "uint64",
}


def server_descriptor() -> FileDescriptorProto:
    """model_config.proto as the wheel's server carries it: each generated protobuf file embeds its
    descriptor."""
    wheel = importlib.util.find_spec("pytriton")
    assert wheel is not None and wheel.submodule_search_locations
    binary = Path(wheel.submodule_search_locations[0]) / "tritonserver" / "bin" / "tritonserver"
    data = binary.read_bytes()
    start = data.index(b"\n\x12model_config.proto\x12\tinference")
    return FileDescriptorProto.FromString(data[start : _end(data, start)])


def table(file: FileDescriptorProto) -> dict[str, Any]:
    """The table of messages and enumerations.

    ``messages``: name -> field -> ``{"type", "repeated"?, "map"?, "oneof"?}``.
    ``enums``: name -> word -> number.
    """
    messages: dict[str, Any] = {}
    enums: dict[str, Any] = {}
    reachable = dict(_messages(file))
    entries = {name for name, message in reachable.items() if message.options.map_entry}
    for name, message in reachable.items():
        if name not in entries:
            messages[name] = {field.name: _field(message, field, reachable, entries) for field in message.field}
    for name, enum in _enums(file):
        enums[name] = {value.name: value.number for value in enum.value}
    return {"messages": messages, "enums": enums}


def generated() -> str:
    found = {"version": VERSION, **table(server_descriptor())}
    for message, fields in LATER.items():
        found["messages"].setdefault(message, {}).update(fields)
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


def operators() -> str:
    """``{domain: {operator: [the opset that brings it, the opset that takes it away again?]}}``."""
    import onnx.defs

    found: dict[str, dict[str, list[int]]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        known = found.setdefault(schema.domain, {}).setdefault(schema.name, [])
        known.append(-schema.since_version if schema.deprecated else schema.since_version)
    for domain in found.values():
        for name, versions in domain.items():
            gone = [-version for version in versions if version < 0 and -version >= max(versions)]
            domain[name] = [min(abs(version) for version in versions), *gone]
    lines = [f'"{domain}": {json.dumps(dict(sorted(known.items())))}' for domain, known in sorted(found.items())]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _field(
    message: DescriptorProto, field: FieldDescriptorProto, messages: dict[str, DescriptorProto], entries: set[str]
) -> dict[str, Any]:
    named = field.type_name.removeprefix(".inference.")
    kind = _SCALARS.get(field.type, named)
    if named in entries:
        key, value = messages[named].field
        return {
            "type": _SCALARS.get(value.type, value.type_name.removeprefix(".inference.")),
            "map": _SCALARS[key.type],
        }
    found: dict[str, Any] = {"type": kind}
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        found["repeated"] = True
    if field.HasField("oneof_index") and not field.proto3_optional:
        found["oneof"] = message.oneof_decl[field.oneof_index].name
    return found


def _messages(file: FileDescriptorProto) -> Iterator[tuple[str, DescriptorProto]]:
    def below(prefix: str, message: DescriptorProto) -> Iterator[tuple[str, DescriptorProto]]:
        name = f"{prefix}{message.name}"
        yield name, message
        for nested in message.nested_type:
            yield from below(f"{name}.", nested)

    for message in file.message_type:
        yield from below("", message)


def _enums(file: FileDescriptorProto) -> Iterator[tuple[str, EnumDescriptorProto]]:
    yield from ((enum.name, enum) for enum in file.enum_type)
    for name, message in _messages(file):
        yield from ((f"{name}.{enum.name}", enum) for enum in message.enum_type)


def _end(data: bytes, start: int) -> int:
    """Where the fields of a FileDescriptorProto (numbers 1 to 12, varints and byte strings) end."""
    at = start
    while True:
        tag, after = _varint(data, at)
        if not 1 <= tag >> 3 <= 12 or tag & 7 not in (0, 2):
            return at
        length, after = _varint(data, after)
        at = after + length if tag & 7 == 2 else after


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


if __name__ == "__main__":
    TARGET.write_text(generated(), encoding="utf-8")
    OPERATORS.write_text(operators(), encoding="utf-8")
