"""YAML text as nodes with their positions.

Decides how YAML syntax errors are reported, and the maximum depth. Must not know the meaning of
nodes. It reads the parser's events and not PyYAML's composed nodes, because PyYAML's composer
recurses without a limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from amphitrite.schemas.errors import Error, Violation

Path = tuple[str | int, ...]

MAX_DEPTH = 64
TAG = "tag:yaml.org,2002:"

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESOLVER: Any = yaml.resolver.Resolver()
_UNPRINTABLE = re.compile(yaml.reader.Reader.NON_PRINTABLE.pattern)


@dataclass(frozen=True, slots=True)
class Mark:
    """Line and column, 1-based."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


@dataclass(slots=True)
class Node:
    """``kind``: scalar, sequence or mapping. ``plain``: a scalar without quotes.

    An alias is the node of its anchor.
    """

    kind: str
    tag: str
    mark: Mark
    text: str = ""
    plain: bool = False
    items: list[Node] = field(default_factory=list)
    pairs: list[tuple[Node, Node]] = field(default_factory=list)


def invalid_document(name: str, violations: list[Violation], hint: str | None = None) -> Error:
    """One error with all violations of the file ``name``."""
    count = f"{len(violations)} problem{'s' if len(violations) != 1 else ''}"
    return Error("InvalidDocument", f"{name} has {count}", target=name, hint=hint, violations=violations)


def violation(name: str, mark: Mark, message: str, hint: str | None = None, path: Path = ()) -> Violation:
    """A violation at ``mark`` in the file ``name``."""
    return Violation(path, message, hint, f"{name}:{mark}")


def compose(text: str, name: str) -> list[Node]:
    """The root node of each YAML document.

    Raises Error InvalidDocument for the first syntax error.
    """
    unprintable = _UNPRINTABLE.search(text)
    if unprintable:
        before = text[: unprintable.start()]
        mark = Mark(before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise invalid_document(
            name, [violation(name, mark, f"YAML does not allow the character U+{ord(unprintable[0]):04X}")]
        )
    try:
        return list(_Composer(yaml.parse(text, Loader=_LOADER), name).documents())
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark or error.context_mark
        mark = Mark(at.line + 1, at.column + 1) if at else Mark(1, 1)
        message = ", ".join(part for part in (error.context, error.problem) if part) or "not YAML"
        hint = "indent with spaces, not with tabs" if _indented_by_tab(text, mark) else None
        raise invalid_document(name, [violation(name, mark, message, hint)]) from error
    except (yaml.YAMLError, ValueError) as error:
        raise invalid_document(name, [violation(name, Mark(1, 1), f"not YAML: {error}")]) from error


def _indented_by_tab(text: str, mark: Mark) -> bool:
    lines = text.split("\n")
    line = lines[mark.line - 1] if mark.line <= len(lines) else ""
    return "\t" in line[: len(line) - len(line.lstrip())]


class _Composer:
    def __init__(self, events: Iterator[Any], name: str) -> None:
        self._events = events
        self._name = name
        self._anchors: dict[str, Node] = {}

    def documents(self) -> Iterator[Node]:
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors = {}
                yield self._node(next(self._events), 0)

    def _node(self, event: Any, depth: int) -> Node:
        mark = Mark(event.start_mark.line + 1, event.start_mark.column + 1)
        if depth > MAX_DEPTH:
            raise invalid_document(
                self._name, [violation(self._name, mark, f"the nesting is too deep; allowed: {MAX_DEPTH} levels")]
            )
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise invalid_document(
                    self._name,
                    [violation(self._name, mark, f"alias *{event.anchor} has no anchor &{event.anchor} before it")],
                )
            return self._anchors[event.anchor]
        node = self._empty(event, mark)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        if node.kind == "sequence":
            while not isinstance(inner := next(self._events), yaml.SequenceEndEvent):
                node.items.append(self._node(inner, depth + 1))
        elif node.kind == "mapping":
            while not isinstance(inner := next(self._events), yaml.MappingEndEvent):
                key = self._node(inner, depth + 1)
                node.pairs.append((key, self._node(next(self._events), depth + 1)))
        return node

    @staticmethod
    def _empty(event: Any, mark: Mark) -> Node:
        """The node of an event, without items and pairs."""
        if isinstance(event, yaml.SequenceStartEvent):
            return Node("sequence", event.tag or TAG + "seq", mark)
        if isinstance(event, yaml.MappingStartEvent):
            return Node("mapping", event.tag or TAG + "map", mark)
        tag = event.tag
        if tag is None:
            tag = _RESOLVER.resolve(yaml.ScalarNode, event.value, event.implicit)
        elif tag == "!":
            tag = TAG + "str"
        return Node("scalar", tag, mark, event.value, plain=event.implicit[0])
