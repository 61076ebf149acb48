"""Reads one value of a scalar field: a number, a boolean, a string or a word of an enumeration.

Decides which tokens are a value of a type, and the message for those that are not. Must not know
fields or messages. Outside contract: ``google/protobuf/text_format.cc``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amphitrite.schemas.repository.config import fields
from amphitrite.schemas.repository.config.lexer import Token, error_message, integer_value, string_value
from amphitrite.schemas.repository.files.findings import closest, listed

_RANGES = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
_FLAGS = {"true": True, "True": True, "t": True, "false": False, "False": False, "f": False}
_SPECIAL = {"inf", "infinity", "nan"}


@dataclass(frozen=True, slots=True)
class Problem:
    """The message of a finding; the fields have the meaning of ``findings.Finding``."""

    message: str
    allowed: str
    found: str | None = None
    near: str | None = None
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class ScalarResult:
    """``length``: number of tokens of the value; 0 if there is no value."""

    value: str | int | float | bool
    length: int
    problem: Problem | None = None


class ScalarReader:
    """Reads a value of ``kind`` (a scalar type or an enumeration) at index ``at`` of ``tokens``."""

    def __init__(self, tokens: Sequence[Token], at: int, kind: str) -> None:
        self._tokens, self._at, self._kind = tokens, at, kind

    def read(self) -> ScalarResult:
        """The value, or the problem if there is none."""
        if self._kind in ("string", "bytes"):
            return self._text()
        if self._kind in ("double", "float"):
            return self._decimal()
        if self._kind in _RANGES:
            return self._integer(*_RANGES[self._kind])
        return self._flag() if self._kind == "bool" else self._word()

    def _token(self, offset: int = 0) -> Token:
        return self._tokens[min(self._at + offset, len(self._tokens) - 1)]

    def _invalid(self, message: str, allowed: str, *, near: str | None = None, fix: str | None = None) -> ScalarResult:
        """The result for an invalid value.

        A scalar of another type is skipped as if it were the value.
        """
        token = self._token()
        sign = 1 if token.text == "-" else 0
        after = self._token(sign)
        if token.kind == "invalid":
            return ScalarResult(0, 1, Problem(error_message(token.text), allowed, fix=fix))
        length = 0 if after.kind in ("symbol", "end") else sign + 1
        found = f"`-{after.text}`" if sign and length else None
        return ScalarResult(0, length, Problem(message, allowed, found, near, fix))

    def _text(self) -> ScalarResult:
        parts: list[str] = []
        while self._token(len(parts)).kind == "string":
            parts.append(string_value(self._token(len(parts)).text))
        if not parts:
            token = self._token()
            fix = f'write "{token.text}"' if token.kind in ("word", "integer", "float") else None
            return self._invalid("must be a string in quotes", "a string in quotes", fix=fix)
        return ScalarResult("".join(parts), len(parts))

    def _integer(self, low: int, high: int) -> ScalarResult:
        sign = 1 if self._token().text == "-" else 0
        token = self._token(sign)
        allowed = "a whole number" + (" of 0 or more" if low == 0 else "")
        if token.kind != "integer" or (sign and low == 0):
            return self._invalid(f"must be {allowed}", allowed, fix=_unquote_hint(token))
        try:
            value = integer_value(token.text)
        except ValueError:
            return self._invalid("a number with a leading 0 is octal", allowed, fix=f"write {token.text.lstrip('0')}")
        value = -value if sign else value
        if not low <= value <= high:
            return self._invalid("the number is out of range", f"{low} to {high}")
        return ScalarResult(value, sign + 1)

    def _decimal(self) -> ScalarResult:
        sign = 1 if self._token().text == "-" else 0
        token = self._token(sign)
        text = token.text.lower()
        is_special = token.kind == "word" and text in _SPECIAL
        if token.kind not in ("integer", "float") and not is_special:
            return self._invalid("must be a number", "a number", fix=_unquote_hint(token))
        try:
            value = float(text if is_special else text.rstrip("f"))
        except ValueError:  # 0x10 is not a decimal number.
            return self._invalid("must be a decimal number", "a decimal number")
        return ScalarResult(-value if sign else value, sign + 1)

    def _flag(self) -> ScalarResult:
        token = self._token()
        if token.kind == "word" and token.text in _FLAGS:
            return ScalarResult(_FLAGS[token.text], 1)
        if token.kind == "integer" and token.text in ("0", "1"):
            return ScalarResult(token.text == "1", 1)
        guess = token.text.strip("\"'").lower()
        return self._invalid("must be true or false", "true, false", near=guess if guess in ("true", "false") else None)

    def _word(self) -> ScalarResult:
        words = fields.table().enums[self._kind]
        sign = 1 if self._token().text == "-" else 0
        token = self._token(sign)
        if token.kind == "integer":
            # Triton's parser accepts a number without a name; the rules check it.
            try:
                value = integer_value(token.text)
            except ValueError:
                value = 2**31
            if value < 2**31:
                return ScalarResult(-value if sign else value, sign + 1)
        if token.kind == "word" and not sign and token.text in words:
            return ScalarResult(words[token.text], 1)
        plain = token.text.strip("\"'").upper()
        return self._invalid("unknown value", listed(list(words)), near=_suggestion(plain, list(words)))


def _suggestion(word: str, words: list[str]) -> str | None:
    """A suggestion: TYPE_FP32 for ``FP32``, ``fp32`` and ``float32``, KIND_GPU for ``GPU``."""
    ends = [known for known in words if known == word or known.endswith(f"_{word}")]
    if ends:
        return ends[0]
    alias = {"FLOAT": "FP32", "FLOAT32": "FP32", "FLOAT64": "FP64", "DOUBLE": "FP64", "FLOAT16": "FP16", "HALF": "FP16",
             "BFLOAT16": "BF16", "BYTES": "STRING", "INT": "INT32", "LONG": "INT64", "BOOLEAN": "BOOL"}  # fmt: skip
    type_name = f"TYPE_{alias.get(word.removeprefix('TYPE_'), '')}"
    return type_name if type_name in words else closest(word, words)


def _unquote_hint(token: Token) -> str | None:
    inner = token.text.strip("\"'")
    return f"write {inner}, without quotes" if token.kind == "string" and inner.lstrip("-").isdigit() else None
