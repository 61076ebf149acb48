"""The generic update: ``--set``, ``--add`` and ``--remove``, in the order in which they stand on the command line.

Decides what each does to a document, as az's generic update does it: nothing but what is named changes. Must not know
which fields there are, but for those that no update can change. Any verb that reads, edits and writes back uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal

from amphitrite.cli.documents import document_files
from amphitrite.cli.documents.assignments import Path, at, dotted, parse_assignment, parse_path, parse_value, resolved
from amphitrite.cli.documents.document_files import Document
from amphitrite.cli.terminal.arguments import DIVIDER
from amphitrite.schemas.documents import load
from amphitrite.schemas.documents.schema_files import resolve
from amphitrite.schemas.errors import Error


@dataclass(frozen=True, slots=True)
class Edit:
    """One occurrence of an option and its words."""

    kind: Literal["set", "add", "remove"]
    words: tuple[str, ...]
    force_string: bool = False


def read(
    set_: Sequence[str] | None,
    add: Sequence[str] | None = None,
    remove: Sequence[str] | None = None,
    *,
    force_string: bool = False,
) -> list[Edit]:
    """The options of a verb as ``given.Set``, ``given.Add`` and ``given.Remove`` hold them, in their order.

    A verb without ``given.Add`` has plain assignments in ``set_``.
    """
    found: list[tuple[int, Edit]] = []
    given: dict[Literal["set", "add", "remove"], Sequence[str] | None] = {"set": set_, "add": add, "remove": remove}
    for kind, values in given.items():
        for index, value in enumerate(values or ()):
            position, *words = value.split(DIVIDER) if DIVIDER in value else (index, value)
            found.append((int(position), Edit(kind, tuple(words), force_string)))
    return [edit for _, edit in sorted(found, key=lambda one: one[0])]


def apply(document: Document, edits: Iterable[Edit]) -> Document:
    """``document`` after each of ``edits``. Raises Error("UsageError")."""
    for edit in edits:
        document = _APPLY[edit.kind](document, edit)
    return document


def refuse_fixed(edits: Iterable[Edit], kind: str, fixed: Mapping[str, object]) -> None:
    """Raises Error("BadArgument") for an edit of a field that ``kind`` has, and that no update can change.

    Those are what the server says of a resource, and ``fixed``, by which the resource is found: field -> its value.
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
                message = f"--{edit.kind} {dotted(steps)}: {field} is fixed when a resource is created"
                raise Error("BadArgument", message, target=field, hint="create another one")
            if entry.get("readOnly"):
                message = f"--{edit.kind} {dotted(steps)}: the server decides {field}; it cannot be changed"
                raise Error("BadArgument", message, target=field)


def _touched(edit: Edit) -> list[tuple[Any, ...]]:
    if edit.kind == "set":
        return [parse_assignment(word).steps for word in edit.words]
    return [parse_path(f"--{edit.kind}", edit.words[0])] if edit.words else []


# -- the three ------------------------------------------------------------------------------------------------------
def _set(document: Document, edit: Edit) -> Document:
    for word in edit.words:
        document = document_files.assign(document, word, force_string=edit.force_string)
    return document


def _add(document: Document, edit: Edit) -> Document:
    """Consecutive ``key=value`` words are one entry, any other word is an entry of its own."""
    if len(edit.words) < 2:
        raise _usage(edit, "a path and what to add", "--add path.to.list key=value key=value, or --add list VALUE")
    path, origin = _located(document, edit)
    entries = at(document.value, path)
    if entries is None:
        entries = []
        document = document_files.with_value(document, path, entries, origin)
    if not isinstance(entries, list):
        found = "a mapping" if isinstance(entries, Mapping) else "a single value"
        hint = f"--set {edit.words[0]}.key=value" if isinstance(entries, Mapping) else f"--set {edit.words[0]}=value"
        raise Error("UsageError", f"{origin}: only a list can be added to, found {found}", target="--add", hint=hint)
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
    """A field; or of a list the entry with this index, which ``list[0]`` says too."""
    if not 1 <= len(edit.words) <= 2 or (len(edit.words) == 2 and not edit.words[1].isdecimal()):
        raise _usage(edit, "a path, or the path of a list and an index", "--remove tags.team, or --remove list 0")
    path, origin = _located(document, edit)
    if len(edit.words) == 2:
        if not isinstance(at(document.value, path), list):
            raise Error("UsageError", f"{origin}: an index, but {dotted(path)} is no list", target="--remove")
        path = (*path, int(edit.words[1]))
    parent, last = at(document.value, path[:-1]), path[-1]
    if isinstance(last, int):
        if not isinstance(parent, list) or last >= len(parent):
            count = len(parent) if isinstance(parent, list) else 0
            raise Error("UsageError", f"{origin}: there is no entry {last} among {count}", target="--remove")
        left = [entry for index, entry in enumerate(parent) if index != last]
        return document_files.with_value(document, path[:-1], left, origin)
    if not isinstance(parent, Mapping) or last not in parent:
        raise _absent(parent, path, origin)
    left_over = {key: entry for key, entry in parent.items() if key != last}
    if len(path) == 1:  # the root keeps the marks of what stays
        return replace(document, value=left_over)
    return document_files.with_value(document, path[:-1], left_over, origin)


_APPLY: Mapping[str, Callable[[Document, Edit], Document]] = {"set": _set, "add": _add, "remove": _remove}


def _located(document: Document, edit: Edit) -> tuple[Path, str]:
    origin = f"--{edit.kind} {edit.words[0]}"
    return resolved(document.value, parse_path(f"--{edit.kind}", edit.words[0]), origin), origin


def _absent(parent: Any, path: Path, origin: str) -> Error:
    """There is no such field: what there is, and what is near."""
    names = sorted(str(name) for name in parent) if isinstance(parent, Mapping) else []
    near = get_close_matches(str(path[-1]), names, n=1)
    where = f"in {dotted(path[:-1])}" if len(path) > 1 else "in it"
    there = f"there is {', '.join(names)}" if names else "nothing is there"
    hint = f"did you mean {dotted((*path[:-1], near[0]))}?" if near else None
    return Error("UsageError", f"{origin}: no `{path[-1]}` {where}; {there}", target="--remove", hint=hint)


def _usage(edit: Edit, wanted: str, example: str) -> Error:
    found = " ".join(edit.words) or "nothing"
    return Error("UsageError", f"--{edit.kind} takes {wanted}; found {found}", target=f"--{edit.kind}", hint=example)
