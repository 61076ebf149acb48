"""Converts a message's JSON form to the message, by the message's own constructor.

Decides nothing: the result is that of ``json_format.ParseDict``, five times as fast, since the
constructor is not written in Python. A starting proxy waits for it. Fields are named as in the
``.proto`` file. Must not know which messages there are. Source: Protocol Buffers' page "ProtoJSON
Format".
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import cache, lru_cache, partial
from typing import Any

from google.protobuf import any_pb2, descriptor_pool, message_factory, struct_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor

_Convert = Callable[[Any], Any]
_WRAPPERS = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String", "UInt32", "UInt64")
)
_INTEGERS = frozenset((FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64,
                       FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64))  # fmt: skip
#: How many filter configurations are cached, as text with their type. Thousands of routes share a
#: few.
_REMEMBERED = 256


def pack(type_url: str, value: Mapping[str, Any]) -> any_pb2.Any:
    """The packed message of that type. Raises ValueError when ``value`` is not its JSON form."""
    try:
        return any_pb2.Any(type_url=type_url, value=_serialised(type_url, value))
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as exc:
        raise ValueError(f"{type_url.rpartition('/')[2]}: {exc}") from exc


def _serialised(type_url: str, value: Mapping[str, Any]) -> bytes:
    descriptor = descriptor_pool.Default().FindMessageTypeByName(type_url.rpartition("/")[2])
    message = message_factory.GetMessageClass(descriptor)(**_message(descriptor, value))
    return bytes(message.SerializeToString(deterministic=True))


def _message(descriptor: Descriptor, value: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the message's constructor."""
    fields = _fields(descriptor)
    arguments: dict[str, Any] = {}
    chosen: list[str] = []
    for name, field_value in value.items():
        if name not in fields:
            raise ValueError(f"{descriptor.full_name} has no field {name}")
        if field_value is None:
            continue
        oneof, convert = fields[name]
        if oneof is not None:
            if oneof in chosen:
                raise ValueError(f"{descriptor.full_name}: more than one of {oneof}")
            chosen.append(oneof)
        arguments[name] = field_value if convert is None else convert(field_value)
    return arguments


@cache
def _fields(descriptor: Descriptor) -> dict[str, tuple[str | None, _Convert | None]]:
    """By name: the oneof that a field belongs to, and the conversion of its value; None: no
    conversion."""
    return {
        field.name: (field.containing_oneof.name if field.containing_oneof else None, _field(field))
        for field in descriptor.fields
    }


def _field(field: FieldDescriptor) -> _Convert | None:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        convert = _single(kind.fields_by_name["value"])
        return None if convert is None else lambda value: {key: convert(item) for key, item in value.items()}
    single = _single(field)
    if single is None or not field.is_repeated:
        return single
    return lambda value: [single(item) for item in value]


def _single(field: FieldDescriptor) -> _Convert | None:
    if field.message_type is not None:
        return _of_message(field.message_type)
    if field.cpp_type in _INTEGERS:
        return _integer
    return base64.b64decode if field.type == FieldDescriptor.TYPE_BYTES else None


def _of_message(kind: Descriptor) -> _Convert:
    name = kind.full_name
    if name in _WRAPPERS:
        inner = _single(kind.fields_by_name["value"]) or (lambda value: value)
        return lambda value: {"value": inner(value)}
    conversions: dict[str, _Convert] = {
        "google.protobuf.Any": _any,
        "google.protobuf.Duration": _duration,
        "google.protobuf.Struct": _struct,
        "google.protobuf.Value": _value,
        "google.protobuf.ListValue": _list,
    }
    return conversions.get(name) or partial(_message, kind)


def _integer(value: Any) -> int:
    """64-bit integers are strings in JSON."""
    if isinstance(value, int | str) and not isinstance(value, bool):
        return int(value)
    raise TypeError(f"not an integer: {value!r}")


@lru_cache(_REMEMBERED)
def _duration(value: str) -> dict[str, int]:
    if not value.endswith("s"):
        raise ValueError(f"not a duration: {value!r}")
    nanos = int(Decimal(value[:-1]).scaleb(9))
    seconds = int(nanos / 10**9)
    return {"seconds": seconds, "nanos": nanos - seconds * 10**9}


def _any(value: Mapping[str, Any]) -> dict[str, Any]:
    """Values with the same repr are equal: they came from JSON's types."""
    if not value:
        return {}
    key = repr(value)
    if key not in _packed:
        inner = {name: item for name, item in value.items() if name != "@type"}
        if len(_packed) >= _REMEMBERED:
            _packed.clear()
        _packed[key] = {"type_url": value["@type"], "value": _serialised(value["@type"], inner)}
    return _packed[key]


_packed: dict[str, dict[str, Any]] = {}


def _struct(value: Mapping[str, Any]) -> struct_pb2.Struct:
    """The message itself. Constructors accept a mapping for the content of a struct, but not within
    a map."""
    return struct_pb2.Struct(fields={key: _value(item) for key, item in value.items()})


def _list(value: Sequence[Any]) -> struct_pb2.ListValue:
    return struct_pb2.ListValue(values=[_value(item) for item in value])


def _value(value: Any) -> struct_pb2.Value:
    match value:
        case None:
            return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
        case bool():
            return struct_pb2.Value(bool_value=value)
        case int() | float():
            return struct_pb2.Value(number_value=value)
        case str():
            return struct_pb2.Value(string_value=value)
        case Mapping():
            return struct_pb2.Value(struct_value=_struct(value))
        case list() | tuple():
            return struct_pb2.Value(list_value=_list(value))
    raise TypeError(f"not a value of JSON: {value!r}")
