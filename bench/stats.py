"""Figures of rounds as one figure with its spread.

Decides medians, spreads, ratios and whether a goal holds. Rounds are interleaved by whoever
measures: what is compared is compared within one round, since a machine's speed drifts. Must not
know what is measured.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` of ``values`` do not exceed (nearest rank). Raises
    ValueError."""
    if not values:
        raise ValueError("there is no percentile of nothing")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def spread(values: Sequence[float]) -> float:
    """(max - min) / median: 0 when all rounds agree."""
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def paired(values: Sequence[float], references: Sequence[float]) -> list[float]:
    """Ratios round by round. A reference of 0 says nothing, so its round is left out."""
    return [v / r for v, r in zip(values, references, strict=True) if r]


def differences(values: Sequence[float], references: Sequence[float]) -> list[float]:
    return [v - r for v, r in zip(values, references, strict=True)]


def middle(values: Sequence[float], digits: int = 2) -> float | str:
    """The median, or nothing to show."""
    return round(statistics.median(values), digits) if values else ""


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound on a measured value, and whether it holds on this machine."""

    goal: str
    bound: Literal["at most", "at least"]
    limit: float
    value: float | None  #: None: it could not be measured
    unit: str = ""

    @property
    def holds(self) -> bool | None:
        if self.value is None:
            return None
        return self.value <= self.limit if self.bound == "at most" else self.value >= self.limit

    def row(self) -> dict[str, Any]:
        said = {None: "not measured", True: "yes", False: "no"}[self.holds]
        value = "" if self.value is None else float(f"{self.value:.3g}")
        return {**asdict(self), "value": value, "holds": said}


@dataclass(frozen=True, slots=True)
class Report:
    """What a benchmark found: tables by title, goals, notes for the reader, versions of what was
    measured."""

    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    goals: Sequence[Goal] = ()
    notes: Sequence[str] = ()
    versions: Mapping[str, str] | None = None

    def json(self) -> dict[str, Any]:
        return {
            "goals": [goal.row() for goal in self.goals],
            "tables": {title: list(rows) for title, rows in self.tables.items()},
            "notes": list(self.notes),
            "versions": dict(self.versions or {}),
        }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as aligned text; the first row's keys are the columns, and those of later rows that it
    lacks follow."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [columns, *([str(row.get(column, "")) for column in columns] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)
