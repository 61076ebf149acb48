"""What is wrong with a model repository, and where.

Decides what a finding says and how it reads on one line. Must not know Triton's rules, files or who prints it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["error", "warning"]
#: Most findings that one file may have; whoever reads more than that reads none.
FINDINGS_MAX = 100
#: Most words that a list of what is allowed shows.
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong with a repository.

    ``severity``: ``error`` where Triton does not load the model, ``warning`` where it does and the model does not do
    what was meant. ``file``: relative to the repository, a directory where no file is to blame, empty for the
    repository itself. ``line``, ``column``: 1-based. ``path``: the field of config.pbtxt, ``input[0].dims``.
    ``code``: one word for the rule. ``found``, ``allowed``, ``near`` (what was probably meant) and ``fix`` (what to
    do) are None where there is none."""

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
        """``model_1/config.pbtxt:3:14``, or the part of it that is known."""
        return self.file if self.line is None else f"{self.file}:{self.line}:{self.column or 1}"

    @property
    def sentence(self) -> str:
        """The message with what was found and what is allowed."""
        parts = [self.message]
        if self.found is not None:
            parts.append(f"found {self.found}")
        if self.allowed is not None:
            parts.append(f"allowed: {self.allowed}")
        return "; ".join(parts)

    @property
    def hint(self) -> str | None:
        """The near miss and the fix."""
        near = f'did you mean "{self.near}"?' if self.near else None
        return "; ".join(part for part in (near, self.fix) if part) or None

    def __str__(self) -> str:
        return ": ".join(part for part in (self.location, self.path, self.sentence) if part)

    def to_document(self) -> dict[str, Any]:
        """As ``ml model validate -o json`` prints it: every field, None where there is nothing to say."""
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
    """Those for which Triton does not load the repository."""
    return [finding for finding in findings if finding.severity == "error"]


def near(word: str, words: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The one of ``words`` that was probably meant."""
    known = list(words)
    same = [one for one in known if one.lower() == word.lower()]
    found = same or difflib.get_close_matches(word[:60], known, n=1, cutoff=cutoff)
    return found[0] if found else None


def listed(words: Sequence[str]) -> str:
    """``a, b, c``, at most twenty of them; ``none`` for none."""
    if not words:
        return "none"
    return ", ".join(words[:_SHOWN]) + (f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else "")
