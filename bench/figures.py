"""The figures in ``docs/benchmarks.md``, from ``bench/results/*.json``: nobody writes one by hand.

Decides which tables a reader is shown: goals always, tables while they are short; the rest is in
the JSON. Run after each benchmark whose result is kept; ``tests/test_bench.py`` fails when page and
results disagree.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"
PAGE = RESULTS.parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"
_LONGEST = 32


def load(directory: Path = RESULTS) -> list[dict[str, Any]]:
    """Results that name their benchmark, in the order of their files' names."""
    found = [json.loads(file.read_text()) for file in sorted(directory.glob("*.json"))]
    return [result for result in found if "benchmark" in result]


def render(results: Sequence[Mapping[str, Any]]) -> str:
    """Markdown. Results from before there were goals have one table, ``rows``."""
    parts = []
    for result in results:
        name = result["benchmark"] + (", by parts" if result.get("parts") else "")
        machine = result["machine"]
        lines = [f"### {name}", "", f"{result['when'][:10]}, {machine['cpu']}, {machine['cores']} cores."]
        if result.get("goals"):
            lines += ["", _table(result["goals"])]
        for title, rows in (result.get("tables") or {result["benchmark"]: result.get("rows", [])}).items():
            if 0 < len(rows) <= _LONGEST:
                lines += ["", f"**{title}**", "", _table(rows)]
            elif rows:
                lines += ["", f"**{title}**: {len(rows)} rows, in `bench/results/`."]
        lines += ["", *(f"- {note}" for note in result.get("notes", ()))]
        parts.append("\n".join(lines).rstrip() + "\n")
    return "\n".join(parts)


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = [columns, ["---"] * len(columns), *([str(row.get(c, "")) for c in columns] for row in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def placed(page: str, figures: str) -> str:
    """``page`` with ``figures`` between its marks. Raises ValueError where it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no place for figures: {BEGIN.strip()} and {END.strip()}")
    return before + BEGIN + "\n" + figures + "\n" + END + after


def write() -> None:
    PAGE.write_text(placed(PAGE.read_text(), render(load())))


if __name__ == "__main__":
    write()
