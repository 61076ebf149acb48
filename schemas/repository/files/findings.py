"""Findings: the problems of a model repository, with their locations.

Decides the parts of a finding and its form on one line. Must not know Triton's rules, files or who
prints it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["error", "warning"]
#: Maximum number of findings for one file.
FINDINGS_MAX = 100
#: Maximum number of words in a list of allowed values.
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem of a repository.

    ``severity``: ``error`` if Triton does not load the model, ``warning`` if it does, but probably
    not as intended. ``file``: relative to the repository; a directory if no file is affected; empty
    for the repository itself. ``line``, ``column``: 1-based. ``path``: the field of config.pbtxt,
    such as ``input[0].dims``. ``code``: the name of the rule. ``found``, ``allowed``, ``near`` (a
    suggestion) and ``fix`` (what to do) are None if there is none.
    """

    file: str
    message: str
    code: str
    severity: Severity = "error"
    line: int | None = None
    column: int | None = None
    path: str = ""
    found: str | None = None
    allowed: str | None = None
    near: str | None = None
    fix: str | None = None

    @property
    def location(self) -> str:
        """``model_1/config.pbtxt:3:14``, or as much of it as is known."""
        return self.file if self.line is None else f"{self.file}:{self.line}:{self.column or 1}"

    @property
    def sentence(self) -> str:
        """The message with the value found and what is allowed."""
        parts = [self.message]
        if self.found is not None:
            parts.append(f"found {self.found}")
        if self.allowed is not None:
            parts.append(f"allowed: {self.allowed}")
        return "; ".join(parts)

    @property
    def hint(self) -> str | None:
        """The suggestion and the fix; None if there is neither."""
        suggestion = f'did you mean "{self.near}"?' if self.near else None
        return "; ".join(part for part in (suggestion, self.fix) if part) or None

    def __str__(self) -> str:
        return ": ".join(part for part in (self.location, self.path, self.sentence) if part)

    def to_document(self) -> dict[str, Any]:
        """The output of ``ml model validate -o json``: every field, None if it is unknown."""
        return {
            "severity": self.severity,
            "code": self.code,
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "path": self.path or None,
            "message": self.message,
            "found": self.found,
            "allowed": self.allowed,
            "near": self.near,
            "fix": self.fix,
        }


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """The findings with severity ``error``."""
    return [finding for finding in findings if finding.severity == "error"]


def closest(word: str, words: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The one of ``words`` that is most similar to ``word``; None if none is."""
    known = list(words)
    exact = [one for one in known if one.lower() == word.lower()]
    matches = exact or difflib.get_close_matches(word[:60], known, n=1, cutoff=cutoff)
    return matches[0] if matches else None


def listed(words: Sequence[str]) -> str:
    """``a, b, c``, at most twenty of them; ``none`` for an empty list."""
    if not words:
        return "none"
    return ", ".join(words[:_SHOWN]) + (f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else "")
