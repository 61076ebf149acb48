"""YAML text as values with their positions.

Decides which YAML is accepted: mappings with text keys, lists, text, numbers, true, false and null.
Duplicate keys, other tags and unbounded aliases are refused. Must not know the fields of any
document. Scalars are read as YAML 1.1, as Azure ML reads them, except that dates stay text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml

from amphitrite.cli.documents.yaml_nodes import MAX_DEPTH, TAG, Mark, Node, Path, compose, invalid_document, violation
from amphitrite.schemas.errors import Violation

MAX_VALUES = 100_000
#: Characters of a number. Longer ones are text: no field needs them, and parsing them takes
#: quadratic time.
_MAX_NUMBER_LENGTH = 40

_CONSTRUCTOR = yaml.constructor.SafeConstructor()
_TEXT_TAGS = frozenset({TAG + "str", TAG + "timestamp", TAG + "value", TAG + "merge"})


@dataclass(frozen=True, slots=True)
class Parsed:
    """One YAML document.

    ``marks``: path -> the position to report for a value: of a scalar its own, of a mapping or list
    that of its key. ``keys``: path -> the position of its key. ``texts``: path -> the source text
    of a plain scalar that is not text.
    """

    value: Any
    marks: dict[Path, Mark]
    keys: dict[Path, Mark]
    texts: dict[Path, str]


def parse(text: str, name: str) -> list[Parsed]:
    """The documents in ``text``. ``name``: the file, for locations.

    Raises Error InvalidDocument with the first syntax error, or else with all other violations.
    """
    builder = _Builder(name)
    parsed = [builder.document(root) for root in compose(text, name)]
    if builder.violations:
        raise invalid_document(name, list(builder.violations.values()))
    return parsed


class _Builder:
    """Makes values of nodes.

    Aliases are copied, so that each path has its own value; their total is limited.
    """

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
        new = violation(self.name, node.mark, message, hint, path)
        self.violations.setdefault((new.location, message), new)

    @contextmanager
    def _entered(self, node: Node, path: Path) -> Iterator[bool]:
        """Whether it is safe to descend into ``node``.

        Each visit counts, so that aliases cannot multiply.
        """
        self._spend(node)
        if any(node is outer for outer in self._open):
            self._refuse(node, path, "the alias refers to a value that contains it")
            yield False
        elif len(self._open) > MAX_DEPTH:
            self._refuse(node, path, f"the nesting is too deep; allowed: {MAX_DEPTH} levels")
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
            self._refuse(node, (), f"the document has too many values, with aliases expanded; allowed: {MAX_VALUES}")
            raise invalid_document(self.name, list(self.violations.values()))

    def _value(self, node: Node, path: Path) -> Any:
        if node.kind == "scalar":
            self._spend(node)
            self._parsed.marks[path] = node.mark
            return self._scalar(node, path)
        self._parsed.marks[path] = self._parsed.keys.get(path, node.mark)
        if node.tag != TAG + ("seq" if node.kind == "sequence" else "map"):
            self._refuse(node, path, f"the tag {node.tag} is not allowed")
        with self._entered(node, path) as safe:
            if not safe:
                return None
            if node.kind == "sequence":
                return [self._value(item, (*path, index)) for index, item in enumerate(node.items)]
            return self._mapping(node, path)

    def _mapping(self, node: Node, path: Path) -> dict[str, Any]:
        value: dict[str, Any] = {}
        key_marks: dict[str, Mark] = {}
        merge_nodes: list[Node] = []
        for key, entry in node.pairs:
            at = (*path, key.text)
            if key.kind != "scalar" or (key.plain and not key.text):
                self._refuse(key, path, "a key must be text")
            elif key.tag == TAG + "merge" and key.plain:
                merge_nodes.append(entry)
            elif key.text in key_marks:
                first = f"{self.name}:{key_marks[key.text]}"
                self._refuse(key, at, f"duplicate key; the first one is at {first}", "remove one of the two")
            else:
                key_marks[key.text] = key.mark
                self._parsed.keys[at] = key.mark
                value[key.text] = self._value(entry, at)
        for source in merge_nodes:
            for part in source.items if source.kind == "sequence" else [source]:
                self._merge(part, value, path)
        return value

    def _merge(self, part: Node, value: dict[str, Any], path: Path) -> None:
        """``<<: *defaults``: the mapping's own keys take precedence, then those merged first."""
        if part.kind != "mapping":
            self._refuse(part, path, "<< must be a mapping or a list of mappings")
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
            self._refuse(node, path, f"the tag {node.tag} is not allowed", "write text, a number, true, false or null")
            return None
        if len(node.text) > _MAX_NUMBER_LENGTH:
            return node.text
        self._parsed.texts[path] = node.text
        try:
            scalar = yaml.ScalarNode(node.tag, node.text)
            return getattr(_CONSTRUCTOR, f"construct_yaml_{kind}")(scalar)
        except (ValueError, KeyError, IndexError, OverflowError):
            self._refuse(node, path, f"found {node.text!r}; allowed: a value of YAML's type {kind}")
            return None
