"""The generic update: ``--set``, ``--add`` and ``--remove``, in their order on the command line.

Decides what each edit does to a document, like az's generic update: only the named fields change.
Must not know which fields exist, except for those that no update can change. Every verb that reads,
edits and writes back a resource uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal

from amphitrite.cli.documents import document_files
from amphitrite.cli.documents.assignments import (
    Path,
    parse_assignment,
    parse_path,
    parse_value,
    path_text,
    resolve_selectors,
    value_at,
)
from amphitrite.cli.documents.document_files import Document
from amphitrite.cli.terminal.arguments import SEPARATOR
from amphitrite.schemas.documents import load
from amphitrite.schemas.documents.schema_files import resolve
from amphitrite.schemas.errors import Error


@dataclass(frozen=True, slots=True)
class Edit:
    """One occurrence of an option and its values."""

    kind: Literal["set", "add", "remove"]
    words: tuple[str, ...]
    force_string: bool = False


def parse_edits(
    set_: Sequence[str] | None,
    add: Sequence[str] | None = None,
    remove: Sequence[str] | None = None,
    *,
    force_string: bool = False,
) -> list[Edit]:
    """The values of ``--set``, ``--add`` and ``--remove``, in their order on the command line.

    A verb without ``options.Add`` has plain assignments in ``set_``.
    """
    positions: list[tuple[int, Edit]] = []
    values_by_kind: dict[Literal["set", "add", "remove"], Sequence[str] | None] = {
        "set": set_,
        "add": add,
        "remove": remove,
    }
    for kind, values in values_by_kind.items():
        for index, value in enumerate(values or ()):
            position, *words = value.split(SEPARATOR) if SEPARATOR in value else (index, value)
            positions.append((int(position), Edit(kind, tuple(words), force_string)))
    return [edit for _, edit in sorted(positions, key=lambda item: item[0])]


def apply(document: Document, edits: Iterable[Edit]) -> Document:
    """``document`` with ``edits`` applied in order. Raises Error UsageError."""
    for edit in edits:
        document = _APPLY[edit.kind](document, edit)
    return document


def refuse_immutable_fields(edits: Iterable[Edit], kind: str, fixed: Mapping[str, object]) -> None:
    """Raises Error BadArgument for an edit of a field that no update can change.

    Those are the read-only fields of ``kind``, and ``fixed``: field -> its value, which may be set
    again.
    """
    schema = load(kind)
    for edit in edits:
        for steps in _touched(edit):
            field = str(steps[0])
            entry = resolve(schema.get("properties", {}).get(field, {}), schema)
            if field in fixed:
                value = parse_assignment(edit.words[0]).text if edit.kind == "set" and len(steps) == 1 else None
                if value == str(fixed[field]):
                    continue
                message = f"--{edit.kind} {path_text(steps)}: {field} cannot change after a resource is created"
                raise Error("BadArgument", message, target=field, hint="create another resource")
            if entry.get("readOnly"):
                message = f"--{edit.kind} {path_text(steps)}: {field} is read-only"
                raise Error("BadArgument", message, target=field)


def _touched(edit: Edit) -> list[tuple[Any, ...]]:
    if edit.kind == "set":
        return [parse_assignment(word).steps for word in edit.words]
    return [parse_path(f"--{edit.kind}", edit.words[0])] if edit.words else []


# -- one edit --------------------------------------------------------------------------------------
def _set(document: Document, edit: Edit) -> Document:
    for word in edit.words:
        document = document_files.with_assignment(document, word, force_string=edit.force_string)
    return document


def _add(document: Document, edit: Edit) -> Document:
    """Consecutive ``key=value`` words form one entry; any other word is an entry of its own."""
    if len(edit.words) < 2:
        raise _usage(edit, "PATH VALUE ...", "for example --add path.to.list key=value key=value, or --add list VALUE")
    path, origin = _located(document, edit)
    entries = value_at(document.value, path)
    if entries is None:
        entries = []
        document = document_files.with_value(document, path, entries, origin)
    if not isinstance(entries, list):
        actual = "a mapping" if isinstance(entries, Mapping) else "a single value"
        path_to_set = f"{edit.words[0]}.KEY" if isinstance(entries, Mapping) else edit.words[0]
        hint = f"use --set {path_to_set}=VALUE"
        raise Error(
            "UsageError", f"{origin}: the field is {actual}; only a list can be added to", target="--add", hint=hint
        )
    mapping: dict[str, str] = {}
    added: list[Any] = []
    for word in edit.words[1:]:
        key, equals, value = word.partition("=")
        if equals and not word.startswith(("{", "[", '"')):
            if not mapping:
                added.append(mapping)
            mapping[key] = value
        else:
            mapping = {}
            added.append(word if edit.force_string else parse_value(word))
    for index, entry in enumerate(added, start=len(entries)):
        document = document_files.with_value(document, (*path, index), entry, origin)
    return document


def _remove(document: Document, edit: Edit) -> Document:
    """Remove a field, or the entry of a list with this index (also written ``list[0]``)."""
    if not 1 <= len(edit.words) <= 2 or (len(edit.words) == 2 and not edit.words[1].isdecimal()):
        raise _usage(edit, "PATH, or PATH INDEX for a list", "for example --remove tags.team, or --remove list 0")
    path, origin = _located(document, edit)
    if len(edit.words) == 2:
        if not isinstance(value_at(document.value, path), list):
            raise Error(
                "UsageError", f"{origin}: {path_text(path)} is not a list, so it has no index", target="--remove"
            )
        path = (*path, int(edit.words[1]))
    parent, last = value_at(document.value, path[:-1]), path[-1]
    if isinstance(last, int):
        if not isinstance(parent, list) or last >= len(parent):
            count = len(parent) if isinstance(parent, list) else 0
            allowed = f"0 to {count - 1}" if count else "none, because the list is empty"
            raise Error("UsageError", f"{origin}: found index {last}; allowed: {allowed}", target="--remove")
        left = [entry for index, entry in enumerate(parent) if index != last]
        return document_files.with_value(document, path[:-1], left, origin)
    if not isinstance(parent, Mapping) or last not in parent:
        raise _absent(parent, path, origin)
    left_over = {key: entry for key, entry in parent.items() if key != last}
    if len(path) == 1:  # the root keeps the marks of the other fields
        return replace(document, value=left_over)
    return document_files.with_value(document, path[:-1], left_over, origin)


_APPLY: Mapping[str, Callable[[Document, Edit], Document]] = {"set": _set, "add": _add, "remove": _remove}


def _located(document: Document, edit: Edit) -> tuple[Path, str]:
    origin = f"--{edit.kind} {edit.words[0]}"
    return resolve_selectors(document.value, parse_path(f"--{edit.kind}", edit.words[0]), origin), origin


def _absent(parent: Any, path: Path, origin: str) -> Error:
    """The error for a field that does not exist, with the existing fields and a similar one."""
    names = sorted(str(name) for name in parent) if isinstance(parent, Mapping) else []
    matches = get_close_matches(str(path[-1]), names, n=1)
    where = f"in {path_text(path[:-1])}" if len(path) > 1 else "in the document"
    existing = f"found: {', '.join(names)}" if names else "it has no fields"
    hint = f"did you mean {path_text((*path[:-1], matches[0]))}?" if matches else None
    return Error("UsageError", f"{origin}: no field `{path[-1]}` {where}; {existing}", target="--remove", hint=hint)


def _usage(edit: Edit, allowed: str, example: str) -> Error:
    actual = " ".join(edit.words) or "nothing"
    return Error(
        "UsageError", f"--{edit.kind}: found {actual}; allowed: {allowed}", target=f"--{edit.kind}", hint=example
    )
