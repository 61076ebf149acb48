"""YAML text as values that remember where they were written.

Decides which YAML is accepted: mappings with text keys, lists, text, numbers, true, false and null; no duplicate keys,
no other tags, no unbounded aliases. Must not know any document's fields. Scalars are read as YAML 1.1, as Azure ML
reads them, except that dates stay text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml

from amphitrite.cli.documents.yaml_nodes import MAX_DEPTH, TAG, Mark, Node, Path, compose, refusal, violation
from amphitrite.schemas.errors import Violation

MAX_VALUES = 100_000
#: Longer numbers are text: no field needs them, and reading them can take quadratic time.
_MAX_NUMBER_LENGTH = 40

_CONSTRUCTOR = yaml.constructor.SafeConstructor()
_TEXT_TAGS = frozenset({TAG + "str", TAG + "timestamp", TAG + "value", TAG + "merge"})


@dataclass(frozen=True, slots=True)
class Parsed:
    """One YAML document.

    ``marks``: where a value is best pointed at, by path: a scalar itself, a mapping or list by its key. ``keys``: where
    the key of a value is. ``texts``: the source text of plain scalars that are not text.
    """

    value: Any
    marks: dict[Path, Mark]
    keys: dict[Path, Mark]
    texts: dict[Path, str]


def parse(text: str, name: str) -> list[Parsed]:
    """The documents in ``text``; ``name`` is the file's, for locations.

    Raises Error("InvalidDocument"): the first syntax error, or everything else that is wrong.
    """
    builder = _Builder(name)
    parsed = [builder.document(root) for root in compose(text, name)]
    if builder.violations:
        raise refusal(name, list(builder.violations.values()))
    return parsed


class _Builder:
    """Values of nodes. Aliases are copied out, so that every path has its own value; that is what is bounded."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.violations: dict[tuple[str | None, str], Violation] = {}
        self._count = 0
        self._parsed = Parsed(None, {}, {}, {})
        self._open: list[Node] = []

    def document(self, root: Node) -> Parsed:
        self._parsed = Parsed(None, {}, {}, {})
        value = self._value(root, ())
        return Parsed(value, self._parsed.marks, self._parsed.keys, self._parsed.texts)

    def _refuse(self, node: Node, path: Path, message: str, hint: str | None = None) -> None:
        found = violation(self.name, node.mark, message, hint, path)
        self.violations.setdefault((found.location, message), found)

    @contextmanager
    def _entered(self, node: Node, path: Path) -> Iterator[bool]:
        """Whether it is safe to go into ``node``; every entry counts, so that aliases cannot multiply without bound."""
        self._spend(node)
        if any(node is outer for outer in self._open):
            self._refuse(node, path, "an alias leads back into itself")
            yield False
        elif len(self._open) > MAX_DEPTH:
            self._refuse(node, path, f"nested more than {MAX_DEPTH} levels deep")
            yield False
        else:
            self._open.append(node)
            try:
                yield True
            finally:
                self._open.pop()

    def _spend(self, node: Node) -> None:
        self._count += 1
        if self._count > MAX_VALUES:
            self._refuse(node, (), f"more than {MAX_VALUES} values, each alias counted with all that it stands for")
            raise refusal(self.name, list(self.violations.values()))

    def _value(self, node: Node, path: Path) -> Any:
        if node.kind == "scalar":
            self._spend(node)
            self._parsed.marks[path] = node.mark
            return self._scalar(node, path)
        self._parsed.marks[path] = self._parsed.keys.get(path, node.mark)
        if node.tag != TAG + ("seq" if node.kind == "sequence" else "map"):
            self._refuse(node, path, f"tag {node.tag} is not allowed")
        with self._entered(node, path) as safe:
            if not safe:
                return None
            if node.kind == "sequence":
                return [self._value(item, (*path, index)) for index, item in enumerate(node.items)]
            return self._mapping(node, path)

    def _mapping(self, node: Node, path: Path) -> dict[str, Any]:
        value: dict[str, Any] = {}
        written: dict[str, Mark] = {}
        merged: list[Node] = []
        for key, entry in node.pairs:
            at = (*path, key.text)
            if key.kind != "scalar" or (key.plain and not key.text):
                self._refuse(key, path, "a key must be text")
            elif key.tag == TAG + "merge" and key.plain:
                merged.append(entry)
            elif key.text in written:
                first = f"{self.name}:{written[key.text]}"
                self._refuse(key, at, f"written twice; first at {first}", "remove one of the two")
            else:
                written[key.text] = key.mark
                self._parsed.keys[at] = key.mark
                value[key.text] = self._value(entry, at)
        for source in merged:
            for part in source.items if source.kind == "sequence" else [source]:
                self._merge(part, value, path)
        return value

    def _merge(self, part: Node, value: dict[str, Any], path: Path) -> None:
        """``<<: *defaults``: what is written beside it wins, then what is merged first."""
        if part.kind != "mapping":
            self._refuse(part, path, "<< takes a mapping or a list of mappings")
            return
        outer, inner = self._parsed, Parsed(None, {}, {}, {})
        with self._entered(part, path) as safe:
            if not safe:
                return
            self._parsed = inner
            entries = self._mapping(part, path)
            self._parsed = outer
        new = {key: entry for key, entry in entries.items() if key not in value}
        value.update(new)
        depth = len(path)
        outer.marks.update({at: mark for at, mark in inner.marks.items() if at[depth] in new})
        outer.keys.update({at: mark for at, mark in inner.keys.items() if at[depth] in new})
        outer.texts.update({at: text for at, text in inner.texts.items() if at[depth] in new})

    def _scalar(self, node: Node, path: Path) -> Any:
        kind = node.tag.removeprefix(TAG)
        if node.tag in _TEXT_TAGS:
            return node.text
        if kind == "null":
            return None
        if kind not in ("int", "float", "bool"):
            self._refuse(node, path, f"tag {node.tag} is not allowed", "write text, a number, true, false or null")
            return None
        if len(node.text) > _MAX_NUMBER_LENGTH:
            return node.text
        self._parsed.texts[path] = node.text
        try:
            scalar = yaml.ScalarNode(node.tag, node.text)
            return getattr(_CONSTRUCTOR, f"construct_yaml_{kind}")(scalar)
        except (ValueError, KeyError, IndexError, OverflowError):
            self._refuse(node, path, f"found {node.text!r}, which is not of YAML's type {kind}")
            return None
