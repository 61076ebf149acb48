"""Protobuf's text format cut into tokens.

Decides what a word, a number and a string are, as ``google/protobuf/io/tokenizer.cc`` does, and says where each stands.
Must not know fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["word", "integer", "float", "string", "symbol", "end", "wrong"]

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
#: What may not follow a number without a space.
_GLUED = re.compile(r"[A-Za-z_.][A-Za-z0-9_.]*")
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
    """``text`` as it stands in the file. ``wrong``: no token of the format; its text says what was met."""

    kind: Kind
    text: str
    line: int
    column: int

    def __str__(self) -> str:
        return "the end of the file" if self.kind == "end" else f"`{shortened(self.text)}`"


def tokens(text: str) -> Iterator[Token]:
    """All tokens, the last one of kind ``end``. Lines and columns are 1-based; a tab goes on to the next multiple of 8,
    as Triton counts."""
    at, line, column = 0, 1, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            length, kind = _other(text, at)
        else:
            length, kind = match.end() - at, match.lastgroup or "space"
            if kind in ("integer", "float") and (glued := _GLUED.match(text, match.end())):
                length, kind = length + len(glued[0]), "wrong"
            elif kind == "string" and _BAD_ESCAPE.search(match[0]):
                kind = "wrong"
        piece = text[at : at + length]
        if kind != "space":
            yield Token(kind, piece, line, column)  # type: ignore[arg-type]  # Names of the groups.
        line, column = _after(piece, line, column)
        at += length
    yield Token("end", "", line, column)


def string_value(text: str) -> str:
    """The value of a string token: escapes resolved, quotes off."""
    return _ESCAPE.sub(_escaped, text[1:-1])


def integer_value(text: str) -> int:
    """Of an integer token: decimal, ``0x…`` or octal with a leading 0. Raises ValueError for ``08``."""
    if text[:2] in ("0x", "0X"):
        return int(text[2:], 16)
    return int(text, 8) if text.startswith("0") and text != "0" else int(text)


def wrong(text: str) -> str:
    """What is wrong with a token of kind ``wrong``, in words."""
    if text[0] in "0123456789.":
        return f"a space is missing between the number and what follows it: `{shortened(text)}`"
    if text[0] not in "\"'":
        shown = repr(text[0]) if text[0].isprintable() else "a character"
        return f"{shown} (U+{ord(text[0]):04X}) may stand only inside a text in quotes"
    if len(text) > 1 and text[0] == text[-1] and (bad := _BAD_ESCAPE.search(text)):
        return f"`{bad[0]}` is no escape sequence"
    return "a text ends on the line on which it begins; this one is not closed"


def shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:60] + "..."


def _other(text: str, at: int) -> tuple[int, str]:
    """A symbol, or what is no token at all: an open string up to the end of its line, a character that is not ASCII."""
    character = text[at]
    if character in "\"'":
        end = text.find("\n", at)
        return (len(text) if end < 0 else end) - at, "wrong"
    return 1, "symbol" if "!" <= character <= "~" else "wrong"


def _after(piece: str, line: int, column: int) -> tuple[int, int]:
    for character in piece:
        if character == "\n":
            line, column = line + 1, 1
        elif character == "\t":
            column += _TAB - (column - 1) % _TAB
        else:
            column += 1
    return line, column


def _escaped(match: re.Match[str]) -> str:
    octal, hexadecimal, short, long, character = match.groups()
    if octal:
        return chr(int(octal, 8) & 0xFF)
    if hexadecimal or short or long:
        number = int(hexadecimal or short or long, 16)
        return chr(number) if number <= 0x10FFFF else "\ufffd"
    return _SIMPLE.get(character, character)
