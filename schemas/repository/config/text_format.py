"""Parses config.pbtxt, in protobuf's text format, into typed values, and reports all errors.

Decides what Triton's parser accepts, and how parsing continues after an error: with the next field.
Must not know how Triton uses the values. Outside contract: ``google/protobuf/text_format.cc``,
which refuses unknown fields and repeated single fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from amphitrite.schemas.repository.config import fields
from amphitrite.schemas.repository.config.fields import Field
from amphitrite.schemas.repository.config.lexer import Token, error_message, tokens
from amphitrite.schemas.repository.config.scalars import ScalarReader
from amphitrite.schemas.repository.config.syntax_tree import Message, Position, Value
from amphitrite.schemas.repository.files.findings import FINDINGS_MAX, Finding, closest, listed

_CLOSING = {"{": "}", "<": ">", "[": "]"}


class _UnreadableField(Exception):
    """The rest of a field cannot be parsed; the finding has been reported."""


def parse(text: str, file: str, version: tuple[int, int] = (2, 51)) -> tuple[Message, list[Finding]]:
    """The configuration, without the parts that cannot be read, and the findings. Never raises."""
    reader = _Reader(list(tokens(text)), file, version)
    root = Message(fields.ROOT, Position(1, 1))
    reader.message(root, None)
    return root, reader.findings


class _Reader:
    def __init__(self, token_list: Sequence[Token], file: str, version: tuple[int, int]) -> None:
        self._tokens, self._file, self._version = token_list, file, version
        self._at = 0
        self._table = fields.table()
        self.findings: list[Finding] = []

    # The next token.

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._next
        if token.kind != "end":
            self._at += 1
        return token

    def _accept(self, *symbols: str) -> Token | None:
        token = self._next
        return self._take() if token.kind == "symbol" and token.text in symbols else None

    # Messages and fields.

    def message(self, into: Message, opening: Token | None) -> None:
        """Read fields up to the symbol that closes ``opening``, or to the end of the file."""
        closing = _CLOSING[opening.text] if opening else None
        while True:
            token = self._next
            if token.kind == "end":
                if opening is not None:
                    self._report(
                        opening, "unclosed", f"`{opening.text}` is not closed", into.path,
                        fix=f"add `{closing}` at the end of the field",
                    )  # fmt: skip
                return
            if closing and self._accept(closing):
                return
            if token.kind == "symbol" and token.text in "}>]":
                self._take()
                expected = f"`{closing}`" if closing else "a field"
                self._report(token, "syntax", f"`{token.text}` closes nothing", into.path, allowed=expected)
                if opening is not None:
                    return
                continue
            try:
                self._field(into)
            except _UnreadableField:
                into.incomplete = True
                self._recover(token)
            if len(self.findings) >= FINDINGS_MAX:
                self._at = len(self._tokens) - 1
                return

    def _field(self, into: Message) -> None:
        token = self._take()
        if token.kind != "word":
            self._syntax(token, "a field's name", into.path)
        known = self._table.messages[into.type]
        name, field = token.text, known.get(token.text)
        if field is None or (field.since and field.since > self._version):
            self._unknown(token, into, field)
            into.incomplete = True
            self._accept(":")
            self._skip()
            self._accept(";", ",")
            return
        self._check_single(token, into, name, field)
        path = into.at(name)
        is_message = field.key is not None or field.type in self._table.messages
        if not self._accept(":") and not (is_message and self._next.text in ("{", "<", "[")):
            self._syntax(self._next, f"`:` after `{name}`" + (" or `{`" if is_message else ""), path)
        is_repeated = field.repeated or field.key is not None
        values = into.values.setdefault(name, [])
        opening = self._accept("[") if is_repeated else None
        if opening:
            self._list(into, token, field, values, opening)
        else:
            self._value(into, token, field, values)
        self._accept(";", ",")

    def _list(self, into: Message, name: Token, field: Field, values: list[Value], opening: Token) -> None:
        path = into.at(name.text)
        if self._accept("]"):
            return
        while True:
            self._value(into, name, field, values)
            if self._accept("]"):
                return
            if self._next.kind == "end":
                self._report(opening, "unclosed", "`[` is not closed", path, fix="add `]` at the end of the list")
                return
            if self._accept(",") is None:
                self._syntax(self._next, "`,` or `]`", path)
            if self._next.text == "]":
                self._syntax(self._next, "a value after `,`", path, fix="remove the last `,`")

    def _value(self, into: Message, name: Token, field: Field, values: list[Value]) -> None:
        is_repeated = field.repeated or field.key is not None
        path = into.at(name.text) + (f"[{len(values)}]" if is_repeated else "")
        token, key_position = self._next, Position(name.line, name.column)
        position = Position(token.line, token.column)
        if field.key is None and field.type not in self._table.messages:
            value = ScalarReader(self._tokens, self._at, field.type).read()
            if value.problem is not None:
                self._report(token, "type", value.problem.message, path, found=value.problem.found or str(token),
                          allowed=value.problem.allowed, near=value.problem.near, fix=value.problem.fix)  # fmt: skip
                if not value.length:
                    raise _UnreadableField
            self._at += value.length
            if value.problem is None:
                values.append(Value(value.value, position, key_position))
            else:
                into.incomplete = True
            return
        opening = self._accept("{", "<")
        if opening is None:
            fix = 'write value { string_value: "..." }' if field.type == "ModelParameter" or into.type.endswith(
                "ModelParameter>") else None  # fmt: skip
            self._syntax(token, "`{`", path, message=f"`{name.text}` must be a message", fix=fix)
        message = Message(self._entry(field) if field.key else field.type, position, path)
        values.append(Value(message, position, key_position))
        self.message(message, opening)

    def _entry(self, field: Field) -> str:
        """The message type for the entries of a map; it is added to the table once."""
        name = f"map<{field.key}, {field.type}>"
        if name not in self._table.messages:
            entry = {"key": Field(str(field.key)), "value": Field(field.type)}
            self._table.messages[name] = entry  # type: ignore[index]  # Only this changes the table.
        return name

    # Findings.

    def _check_single(self, token: Token, into: Message, name: str, field: Field) -> None:
        if field.repeated or field.key is not None:
            return
        if into.has(name):
            first = into.all(name)[0].key_position.line
            self._report(
                token, "duplicate", f"duplicate field `{name}`; the first one is in line {first}", into.at(name),
                fix="remove one of the two",
            )  # fmt: skip
            return
        for other, values in into.values.items():
            other_field = self._table.messages[into.type][other]
            if field.oneof and values and other_field.oneof == field.oneof:
                line = values[0].key_position.line
                self._report(
                    token, "conflict", f"`{name}` cannot be combined with `{other}` in line {line}",
                    into.at(name), fix=f"remove `{name}` or `{other}`",
                )  # fmt: skip

    def _unknown(self, token: Token, into: Message, field: Field | None) -> None:
        where = into.path.rpartition(".")[2].partition("[")[0] or "the configuration of a model"
        names = sorted(n for n, f in self._table.messages[into.type].items() if not f.since or f.since <= self._version)
        if field is not None and field.since is not None:
            since = ".".join(map(str, field.since))
            self._report(
                token,
                "unknown-field",
                f"Triton {'.'.join(map(str, self._version))} does not know the field `{token.text}`",
                into.at(token.text),
                fix=f"remove it; Triton {since} and later know it",
            )
            return
        suggestion = closest(token.text, names)
        owner = _message_with_field(token.text) if suggestion is None else None
        self._report(
            token, "unknown-field", f"unknown field `{token.text}` in {where}", into.at(token.text),
            allowed=None if suggestion else listed(names), near=suggestion,
            fix=f"move it to a message {owner}" if owner else None,
        )  # fmt: skip

    def _syntax(self, token: Token, allowed: str, path: str, *, message: str = "", fix: str | None = None) -> NoReturn:
        if token.kind == "invalid":
            self._report(token, "syntax", error_message(token.text), path, fix=fix or _invalid_hint(token.text))
        else:
            self._report(
                token,
                "syntax",
                message or f"expected {allowed}",
                path,
                found=str(token),
                allowed=allowed if message else None,
                fix=fix or _comment_hint(token),
            )
        raise _UnreadableField

    def _report(self, token: Token, code: str, message: str, path: str, *, found: str | None = None,
             allowed: str | None = None, near: str | None = None, fix: str | None = None) -> None:  # fmt: skip
        self.findings.append(
            Finding(self._file, message, code, "error", token.line, token.column, path, found, allowed, near, fix)
        )

    # Recovery: the next field.

    def _recover(self, began: Token) -> None:
        """Skip the rest of a field, up to the next line or a closing symbol."""
        line = self._next.line if self._next.line == began.line else began.line
        while self._next.kind != "end" and self._next.line == line:
            if self._next.kind == "symbol" and self._next.text in "}>]":
                if self._next.text == "]":
                    self._take()
                return
            self._skip()

    def _skip(self) -> None:
        """Skip one unknown value: a message or list with its content, or a scalar."""
        depth = 0
        first = True
        while self._next.kind != "end":
            if not depth and not first:
                return
            if not depth and self._next.kind == "symbol" and self._next.text in "}>]":
                return
            token = self._take()
            if token.kind == "symbol" and token.text in "{<[":
                depth += 1
            elif token.kind == "symbol" and token.text in "}>]":
                depth -= 1
            elif (token.kind == "symbol" and token.text == "-" and not depth) or (
                token.kind == "string" and not depth and self._next.kind == "string"
            ):
                continue
            first = False


def _message_with_field(name: str) -> str | None:
    """The only message type with a field of this name; None if there are none or several."""
    owners = [
        f"`{message}`" for message, known in fields.table().messages.items() if name in known and "<" not in message
    ]
    return owners[0] if len(owners) == 1 else None


def _comment_hint(token: Token) -> str | None:
    return "begin a comment with `#`" if token.text == "/" else None


def _invalid_hint(text: str) -> str | None:
    return "save the file as UTF-8 without a byte order mark" if text == "\ufeff" else None
