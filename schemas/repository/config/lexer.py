"""Splits protobuf's text format into tokens with positions.

Decides what a word, a number and a string are. Must not know fields. Outside contract: the Text
Format Language Specification of Protocol Buffers, as ``google/protobuf/io/tokenizer.cc`` implements
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["word", "integer", "float", "string", "symbol", "end", "invalid"]

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\v\f\n]+|\#[^\n]*)
  | (?P<float>(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fF]?|[0-9]+[eE][+-]?[0-9]+[fF]?|[0-9]+[fF])
  | (?P<integer>0[xX][0-9a-fA-F]+|[0-9]+)
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<string>"(?:\\[^\n]|[^"\\\n])*"|'(?:\\[^\n]|[^'\\\n])*')
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
#: Characters that must not follow a number without a space.
_WORD_AFTER_NUMBER = re.compile(r"[A-Za-z_.][A-Za-z0-9_.]*")
_BAD_ESCAPE = re.compile(
    r"""
    (?<!\\)(?:\\\\)*\\(?:
        [^abfnrtv\\?'"0-7xXuU]
      | [xX](?![0-9a-fA-F])
      | u(?![0-9a-fA-F]{4})
      | U(?!00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4})
    )""",
    re.VERBOSE,
)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_TAB = 8


@dataclass(frozen=True, slots=True)
class Token:
    """``text``: as in the file. ``kind``: ``invalid`` for characters that are not a token."""

    kind: Kind
    text: str
    line: int
    column: int

    def __str__(self) -> str:
        return "the end of the file" if self.kind == "end" else f"`{shorten(self.text)}`"


def tokens(text: str) -> Iterator[Token]:
    """All tokens; the last one has the kind ``end``.

    Lines and columns are 1-based. As in Triton's messages, a tab advances to the next multiple of
    8.
    """
    at, line, column = 0, 1, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            length, kind = _symbol_or_invalid(text, at)
        else:
            length, kind = match.end() - at, match.lastgroup or "space"
            if kind in ("integer", "float") and (rest := _WORD_AFTER_NUMBER.match(text, match.end())):
                length, kind = length + len(rest[0]), "invalid"
            elif kind == "string" and _BAD_ESCAPE.search(match[0]):
                kind = "invalid"
        piece = text[at : at + length]
        if kind != "space":
            yield Token(kind, piece, line, column)  # type: ignore[arg-type]  # Names of the groups.
        line, column = _advance(piece, line, column)
        at += length
    yield Token("end", "", line, column)


def string_value(text: str) -> str:
    """The value of a string token, without quotes and with escape sequences resolved."""
    return _ESCAPE.sub(_unescape, text[1:-1])


def integer_value(text: str) -> int:
    """The value of an integer token: decimal, ``0x…``, or octal with a leading 0.

    Raises ValueError for an invalid octal number such as ``08``.
    """
    if text[:2] in ("0x", "0X"):
        return int(text[2:], 16)
    return int(text, 8) if text.startswith("0") and text != "0" else int(text)


def error_message(text: str) -> str:
    """The message for a token of kind ``invalid``."""
    if text[0] in "0123456789.":
        return f"a space is missing after the number; found `{shorten(text)}`"
    if text[0] not in "\"'":
        character = repr(text[0]) if text[0].isprintable() else "a character"
        return f"{character} (U+{ord(text[0]):04X}) is allowed only inside quotes"
    if len(text) > 1 and text[0] == text[-1] and (bad := _BAD_ESCAPE.search(text)):
        return f"`{bad[0]}` is not an escape sequence"
    return "the closing quote is missing on this line"


def shorten(text: str) -> str:
    """``text``, cut after 60 characters, for messages."""
    return text if len(text) <= 60 else text[:60] + "..."


def _symbol_or_invalid(text: str, at: int) -> tuple[int, str]:
    """(length, kind) of a symbol, an unclosed string or a character that is not ASCII."""
    character = text[at]
    if character in "\"'":
        end = text.find("\n", at)
        return (len(text) if end < 0 else end) - at, "invalid"
    return 1, "symbol" if "!" <= character <= "~" else "invalid"


def _advance(piece: str, line: int, column: int) -> tuple[int, int]:
    for character in piece:
        if character == "\n":
            line, column = line + 1, 1
        elif character == "\t":
            column += _TAB - (column - 1) % _TAB
        else:
            column += 1
    return line, column


def _unescape(match: re.Match[str]) -> str:
    octal, hexadecimal, short, long, character = match.groups()
    if octal:
        return chr(int(octal, 8) & 0xFF)
    if hexadecimal or short or long:
        number = int(hexadecimal or short or long, 16)
        return chr(number) if number <= 0x10FFFF else "\ufffd"
    return _SIMPLE.get(character, character)
