"""Tables of fields, and the conversion between documents and wire bodies with them.

Decides how a table is applied, and that an unknown wire property is refused unless it is read-only.
Must not know any table. Does not validate values: the JSON Schemas do, on the document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from amphitrite.schemas import casing, durations
from amphitrite.schemas.errors import Error, Violation

Path = tuple[str | int, ...]


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Field:
    """One field: ``name`` in a document, ``wire`` in a body.

    ``write``: converts the value of a valid document to the wire value. ``read``: the reverse;
    raises ValueError with a message about a value that it cannot read. ``fields``: the fields of an
    object.
    """

    name: str
    wire: str
    write: Callable[[Any], Any] = _same
    read: Callable[[Any], Any] = _same
    fields: tuple[Field, ...] = ()


def enumeration(name: str, wire: str) -> Field:
    """A field whose value is an enumeration."""
    return Field(name, wire, casing.to_wire, casing.to_document)


def milliseconds(name: str, wire: str) -> Field:
    """A field in milliseconds; on the wire an ISO 8601 duration."""
    return Field(name, wire, durations.from_milliseconds, durations.to_milliseconds)


def seconds(name: str, wire: str) -> Field:
    """A field in seconds; on the wire an ISO 8601 duration."""
    return Field(name, wire, durations.from_seconds, durations.to_seconds)


def write(fields: Sequence[Field], document: Mapping[str, Any]) -> dict[str, Any]:
    """The wire object of an object in a valid document, without absent and None fields."""
    body = {}
    for field in fields:
        value = document.get(field.name)
        if value is not None:
            body[field.wire] = write(field.fields, value) if field.fields else field.write(value)
    return body


class Reader:
    """Reads one wire body and collects its violations; ``finish`` raises them all at once."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []

    def refuse(self, path: Path, message: str, hint: str | None = None) -> None:
        """Add a violation."""
        self.violations.append(Violation(path, message, hint))

    def object(self, body: object, path: Path) -> Mapping[str, Any]:
        """``body`` if it is a JSON object; an empty one for null; any other value is refused."""
        if body is None:
            return {}
        if isinstance(body, Mapping):
            return body
        self.refuse(path, "must be a JSON object")
        return {}

    def read(
        self, fields: Sequence[Field], body: Mapping[str, Any], path: Path, read_only: frozenset[str] = frozenset()
    ) -> dict[str, Any]:
        """The document of a wire object. Null and empty objects count as absent."""
        document: dict[str, Any] = {}
        for field in fields:
            value = body.get(field.wire)
            if value is None or value == {}:
                continue
            at = (*path, field.wire)
            if field.fields:
                value = self.read(field.fields, self.object(value, at), at)
            else:
                try:
                    value = field.read(value)
                except ValueError as error:
                    self.refuse(at, str(error))
                    continue
            if value != {}:
                document[field.name] = value
        known = {field.wire for field in fields}
        for name in body:
            if name not in known and name not in read_only:
                self.refuse(
                    (*path, str(name)), "unknown property", f"use one of the properties {', '.join(sorted(known))}"
                )
        return document

    def finish(self, target: str) -> None:
        """Raises Error BadArgument with all violations, if there are any."""
        if self.violations:
            first = self.violations[0]
            more = f" (and {len(self.violations) - 1} more)" if len(self.violations) > 1 else ""
            raise Error(
                "BadArgument",
                f"{first.dotted or 'body'}: {first.message}{more}",
                target=target,
                hint=first.hint,
                violations=self.violations,
            )


def show(fields: Sequence[Field], body: Mapping[str, Any]) -> dict[str, Any]:
    """The printed object of an object in our own response.

    Like ``Reader.read``, but keeps empty maps.
    """
    output = {}
    for field in fields:
        value = body.get(field.wire)
        if value is not None:
            output[field.name] = show(field.fields, value) if field.fields else field.read(value)
    return output
