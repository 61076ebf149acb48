"""Reads YAML files as validated, normalized documents. One error lists all violations of a file.

Decides which files are read and how the line of a violation is found. Must not know the meaning of
fields: the JSON Schemas of ``amphitrite.schemas`` define it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path as FilePath
from typing import Any

from amphitrite.cli.documents.assignments import apply_set, parse_assignment, replace_at, resolve_selectors
from amphitrite.cli.documents.yaml_nodes import Mark, Path, invalid_document, violation
from amphitrite.cli.documents.yaml_source import parse
from amphitrite.schemas.documents import normalize, validate
from amphitrite.schemas.errors import MISSING, Error, Violation

__all__ = [
    "Document",
    "apply_set",
    "empty_document",
    "load_document",
    "load_documents",
    "validate_and_normalize",
    "with_assignment",
    "with_assignments",
    "with_value",
]

MAX_BYTES = 1 << 20
_PLACEHOLDER = re.compile(r"\{\{\s*[\w.$-]{1,100}\s*\}\}")


@dataclass(frozen=True, slots=True)
class Document:
    """A value and the location of each of its parts.

    ``name``: the file as the user named it. ``directory``: the base of relative paths in the
    document. ``marks``, ``keys`` and ``texts``: see ``yaml_source.Parsed``. ``origins``: the option
    that set a part, such as ``--set a.b``. ``placeholder``: a hint about a placeholder in the file
    that was not replaced.
    """

    name: str
    value: Any
    directory: FilePath
    marks: Mapping[Path, Mark] = field(default_factory=dict)
    keys: Mapping[Path, Mark] = field(default_factory=dict)
    texts: Mapping[Path, str] = field(default_factory=dict)
    origins: Mapping[Path, str] = field(default_factory=dict)
    placeholder: str | None = None

    def location(self, path: Path, *, about_key: bool = False) -> str | None:
        """``file:line:column`` of the value at ``path`` or above it, or the option that set it."""
        if about_key and path in self.keys and path not in self.origins:
            return f"{self.name}:{self.keys[path]}"
        for length in range(len(path), -1, -1):
            above = path[:length]
            if above in self.origins:
                return self.origins[above]
            if above in self.marks:
                return f"{self.name}:{self.marks[above]}"
        return None


def empty_document(name: str = "the command line") -> Document:
    """A document without a file: options set its fields.

    Relative paths start in the working directory.
    """
    return Document(name, {}, FilePath())


def load_document(path: str) -> Document:
    """The one YAML document in the file ``path`` (``-``: standard input).

    Raises Error LocalFileError if the file cannot be read, LimitExceeded above 1 MiB, and
    InvalidDocument with locations if it is not exactly one YAML document.
    """
    documents = load_documents(path)
    if len(documents) > 1:
        name = documents[0].name
        at = documents[1].marks[()]
        hint = "use one file for each document, or `ml apply -f`, which takes several"
        raise invalid_document(name, [violation(name, at, f"found {len(documents)} documents; allowed: one", hint)])
    return documents[0]


def load_documents(path: str) -> list[Document]:
    """All YAML documents in a file, at least one. Raises as :func:`load_document`."""
    name = "<stdin>" if path == "-" else path
    text = _text(path, name)
    placeholder = _placeholder(text, name)
    try:
        parsed = parse(text, name)
    except Error as error:
        if placeholder and error.code == "InvalidDocument":
            raise invalid_document(name, list(error.violations), placeholder) from error
        raise
    if not parsed:
        raise invalid_document(name, [violation(name, Mark(1, 1), "the document is empty")])
    directory = FilePath() if path == "-" else FilePath(path).parent
    return [
        Document(name, result.value, directory, result.marks, result.keys, result.texts, placeholder=placeholder)
        for result in parsed
    ]


def with_assignments(document: Document, assignments: Iterable[str]) -> Document:
    """``document`` with each of ``assignments`` (``--set``) applied. Raises Error UsageError."""
    for text in assignments:
        document = with_assignment(document, text)
    return document


def with_assignment(document: Document, text: str, *, force_string: bool = False) -> Document:
    """``document`` with one assignment (``--set``) applied. Raises Error UsageError."""
    assignment = parse_assignment(text, force_string=force_string)
    path = resolve_selectors(document.value, assignment.steps, assignment.origin)
    document = with_value(document, path, assignment.value, assignment.origin)
    if not isinstance(assignment.value, (str, list, dict)) and assignment.value is not None:
        document = replace(document, texts={**document.texts, path: assignment.text})
    return document


def with_value(document: Document, path: Path, value: Any, origin: str) -> Document:
    """``document`` with ``value`` at ``path``.

    ``origin`` (such as ``--name``) becomes its location.
    """
    length = len(path)
    return replace(
        document,
        value=replace_at(document.value, path, value, origin),
        texts={at: text for at, text in document.texts.items() if at[:length] != path},
        marks={at: mark for at, mark in document.marks.items() if at[:length] != path},
        origins={**{at: who for at, who in document.origins.items() if at[:length] != path}, path: origin},
    )


def validate_and_normalize(document: Document, kind: str) -> dict[str, Any]:
    """Validate ``document`` and return its canonical form (see ``documents.normalize``).

    Raises one Error InvalidDocument with all violations, each with its location, in the order of
    the file.
    """
    violations = validate(kind, document.value, document.texts)
    if violations:
        located = [
            replace(violation, location=document.location(violation.path, about_key=violation.about_key))
            for violation in map(partial(_with_source, document), violations)
        ]
        raise invalid_document(document.name, sorted(located, key=_position), document.placeholder)
    return normalize(kind, document.value, document.texts)


def _with_source(document: Document, violation: Violation) -> Violation:
    """Without a file, says of a missing field where it can come from."""
    if document.marks or violation.hint or violation.message != MISSING:
        return violation
    option = violation.dotted.replace("_", "-")
    return replace(violation, hint=f"add --{option}, or -f with a YAML document that has it")


def _position(violation: Violation) -> tuple[int, int, str]:
    """Sort key: line and column as numbers; options come last."""
    match = re.search(r":(\d+):(\d+)$", violation.location or "")
    return (int(match[1]), int(match[2]), "") if match else (sys.maxsize, 0, violation.location or "")


def _placeholder(text: str, name: str) -> str | None:
    match = _PLACEHOLDER.search(text)
    if match is None:
        return None
    line = text.count("\n", 0, match.start()) + 1
    return f"replace the placeholder {match[0]} at {name}:{line} with a value, for example with sed"


def _text(path: str, name: str) -> str:
    try:
        if path == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise Error(
            "LocalFileError",
            f"cannot read {name}: {reason or error}",
            target=name,
            hint="pass a YAML file, or - for stdin, to -f",
        ) from error
    if len(data) > MAX_BYTES:
        raise Error(
            "LimitExceeded",
            f"{name} is too large; allowed: {MAX_BYTES} bytes (1 MiB)",
            target=name,
            hint="split the document, or move large parts into files that it names",
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        message = f"not UTF-8: byte 0x{data[error.start]:02x}"
        raise invalid_document(
            name, [violation(name, Mark(line, column), message, "save the file as UTF-8")]
        ) from error
