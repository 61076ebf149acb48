"""One code explained.

Decides what an explanation consists of. Must not know any code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Explanation:
    """``meaning``: what has happened, in a sentence or two. ``remedies``: (cause, what to do).

    ``status``: of the response, None for a code that no response of ours has.
    """

    code: str
    meaning: str
    remedies: tuple[tuple[str, str], ...]
    status: int | None = None

    def to_document(self) -> dict[str, Any]:
        """As data for ``--output``."""
        remedies = [{"cause": cause, "remedy": remedy} for cause, remedy in self.remedies]
        return {"code": self.code, "http_status": self.status, "meaning": self.meaning, "remedies": remedies}


@dataclass(frozen=True, slots=True)
class Section:
    """Codes that people meet in the same place."""

    title: str
    about: str
    entries: tuple[Explanation, ...]
