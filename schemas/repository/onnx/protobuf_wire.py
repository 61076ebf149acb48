"""Reads protobuf's wire format from a file, without reading large values.

Decides when a file is damaged and how much of it is read. Must not know messages. Outside contract:
Protocol Buffers, "Encoding".
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from amphitrite.schemas.repository.files.file_listing import TooMuch

#: Maximum number of fields in a file, many more than real models have.
FIELDS_MAX = 1_000_000
#: Maximum bytes of a string that are read.
_TEXT_MAX = 64 * 1024


class Damaged(Exception):
    """The content is not valid protobuf, or is truncated."""


@dataclass(frozen=True, slots=True)
class Span:
    """The bytes of a file from ``start`` up to but not including ``end``."""

    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


class Walker:
    """Reads one file. It changes the position of ``stream``."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream, self.file_span = stream, Span(0, size)
        self._left = FIELDS_MAX

    def fields(self, span: Span) -> Iterator[tuple[int, int | Span]]:
        """(number, value) of each field of the message in ``span``; a value is an int or a Span.

        Raises Damaged, TooMuch, OSError.
        """
        at = span.start
        while at < span.end:
            self._left -= 1
            if self._left < 0:
                raise TooMuch
            # Tag and length are short: one read is enough for both.
            self._stream.seek(at)
            head = self._stream.read(min(20, span.end - at))
            tag, used = _varint(head, 0)
            kind = tag & 7
            if tag >> 3 == 0 or kind not in (0, 1, 2, 5):
                raise Damaged
            if kind == 0:
                value, used = _varint(head, used)
                at += used
                yield tag >> 3, value
                continue
            length = {1: 8, 5: 4}.get(kind, 0)
            if kind == 2:
                length, used = _varint(head, used)
            value_span = Span(at + used, at + used + length)
            if value_span.end > span.end:
                raise Damaged
            yield tag >> 3, value_span
            at = value_span.end

    def text(self, span: Span) -> str:
        """The string in ``span``; invalid UTF-8 is replaced."""
        return self._bytes(span).decode("utf-8", errors="replace")

    def numbers(self, value: int | Span) -> list[int]:
        """The values of a repeated varint field, packed or not."""
        if isinstance(value, int):
            return [value]
        packed, at, values = self._bytes(value), 0, []
        while at < len(packed):
            number, at = _varint(packed, at)
            values.append(number)
        return values

    def _bytes(self, span: Span) -> bytes:
        self._stream.seek(span.start, os.SEEK_SET)
        return self._stream.read(min(span.size, _TEXT_MAX))


def signed(value: int) -> int:
    """A varint as int64."""
    return value - 2**64 if value >= 2**63 else value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Damaged
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value & (2**64 - 1), at
