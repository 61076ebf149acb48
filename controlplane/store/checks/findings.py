"""What a check has looked at, and what it has found.

Decides the form of the result. Must not know what was checked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: An upload of the same files repairs.
UPLOAD = "upload the same files again: `ml model create`"
RESTORE = "restore a backup into an empty ML_HOME: `ml server restore`"


@dataclass(frozen=True, slots=True)
class Damage:
    """``problem``: what is wrong with ``name``. ``hint``: what to do. ``repaired``: it has just
    been made again."""

    kind: str
    name: str
    problem: str
    hint: str
    repaired: bool = False


@dataclass(slots=True)
class Report:
    """``checked``: kind -> (number of things, bytes). ``notes``: what could not be checked."""

    checked: dict[str, tuple[int, int]] = field(default_factory=dict)
    damaged: list[Damage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def count(self, kind: str, number: int = 1, size: int = 0) -> None:
        before = self.checked.get(kind, (0, 0))
        self.checked[kind] = before[0] + number, before[1] + size

    def add(self, kind: str, name: str, problem: str, hint: str, *, repaired: bool = False) -> None:
        self.damaged.append(Damage(kind, name, problem, hint, repaired))

    def to_json(self) -> dict[str, Any]:
        """``checked`` has a row for each kind, with the number of its damaged things."""
        rows = [
            {"kind": kind, "count": number, "size": size, "damaged": self._damaged(kind)}
            for kind, (number, size) in self.checked.items()
        ]
        damaged = [
            {
                "kind": one.kind,
                "name": one.name,
                "problem": one.problem,
                "hint": one.hint,
                "repaired": one.repaired,
            }
            for one in self.damaged
        ]
        return {"checked": rows, "damaged": damaged, "notes": self.notes}

    def _damaged(self, kind: str) -> int:
        return len({one.name for one in self.damaged if one.kind == kind})
