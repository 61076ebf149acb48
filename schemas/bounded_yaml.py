"""YAML of others, such as a kubeconfig, in time and memory that its length bounds.

Decides which YAML is read: one document of mappings, lists, text, plain numbers, true, false and
null, with few aliases. PyYAML copies what merge keys name, level by level: 600 bytes take minutes.
Must not know the fields of a document, nor say what it contains, because it may hold secrets.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import yaml

#: Values, each as often as aliases repeat it, and levels. A large kubeconfig has some hundreds.
MAX_VALUES, MAX_DEPTH = 20_000, 64
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_OPENING = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
#: Kinds of plain scalars that are no text. Without YAML's numbers in base 60, which take quadratic
#: time, and long ones.
_PLAIN = {"int": re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})$"), "float": re.compile(r"[-+]?[0-9]{1,18}\.[0-9]{0,18}$")}
_KEPT = ("bool", "null", "merge")


class _Refused(yaml.YAMLError):
    """Its text is ours."""


class _Loader(_LOADER):  # type: ignore[misc]
    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {
        first: [
            *((tag, pattern) for tag, pattern in resolvers if tag.removeprefix(_TAG) in _KEPT),
            *((_TAG + kind, pattern) for kind, pattern in _PLAIN.items() if first and first in "-+0123456789"),
        ]
        for first, resolvers in _LOADER.yaml_implicit_resolvers.items()
    }


def load(text: str) -> Any:
    """The value in ``text``. Raises yaml.YAMLError, whose text says why, without a part of
    ``text``."""
    try:
        _check(text)
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as exc:
        at = exc.problem_mark
        place = "" if at is None else f" at {at.line + 1}:{at.column + 1}"
        raise yaml.YAMLError(f"is not YAML{place}") from exc
    except _Refused:
        raise
    except (yaml.YAMLError, ValueError, TypeError) as exc:
        raise yaml.YAMLError("is not YAML") from exc


def _check(text: str) -> None:
    """Reads the parser's events alone, which takes linear time."""
    sizes: dict[str, int] = {}
    #: The open collections: anchor, and the values in it so far.
    levels: list[tuple[str | None, int]] = []
    total = 0
    for event in yaml.parse(text, Loader=_LOADER):
        size = 1
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise _Refused("has an alias of itself or of nothing")
            size = sizes[event.anchor]
        elif isinstance(event, (*_OPENING, yaml.ScalarEvent)) and event.tag is not None:
            raise _Refused("has a tag, which is not allowed")
        if isinstance(event, _OPENING):
            levels.append((event.anchor, total))
            if len(levels) > MAX_DEPTH:
                raise _Refused(f"is nested deeper than {MAX_DEPTH} levels")
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            anchor, before = levels.pop()
            if anchor is not None:
                sizes[anchor] = total - before
            continue
        elif isinstance(event, yaml.ScalarEvent) and event.anchor is not None:
            sizes[event.anchor] = 1
        elif not isinstance(event, (yaml.AliasEvent, yaml.ScalarEvent)):
            continue
        total += size
        if total > MAX_VALUES:
            raise _Refused(f"has more than {MAX_VALUES} values, with aliases expanded")
