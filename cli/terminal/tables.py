"""Tables for people: aligned columns below headings.

Decides how a table looks: which columns ``-o table`` and ``-o wide`` show, that an empty column is
left out, and where the colour of a state goes. Must not know what the rows are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from amphitrite.cli.terminal import colors

#: Characters of the rule below the heading of the last column.
_RULE_MAX = 30


@dataclass(frozen=True, slots=True)
class Column:
    """``heading``: with the unit of its values. ``wide``: only ``-o wide`` shows it. ``is_state``:
    its values have colours on a terminal."""

    heading: str
    wide: bool = False
    is_state: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """``rows``: one cell for each column; an empty one says nothing. ``empty``: the note that
    stands for a table without rows."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    empty: str = ""


def render(table: Table, *, wide: bool = False, color: bool = False) -> str:
    """``table`` as text; empty without rows."""
    chosen = [
        index
        for index, column in enumerate(table.columns)
        if (wide or not column.wide) and any(row[index] for row in table.rows)
    ]
    columns = [table.columns[index] if color else replace(table.columns[index], is_state=False) for index in chosen]
    return layout(columns, [[single_line(row[index]) for index in chosen] for row in table.rows])


def layout(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """A line of headings, a rule, a line for each row; empty without rows.

    The values of columns with ``is_state`` are coloured.
    """
    if not rows:
        return ""
    headings = [column.heading for column in columns]
    widths = [max(len(line[i]) for line in (headings, *rows)) for i in range(len(headings))]
    # The last column is often a message, longer than a terminal is wide.
    widths[-1] = min(widths[-1], max(len(headings[-1]), _RULE_MAX))
    lines = [headings, ["-" * width for width in widths]]
    text = [_padded(line, widths) for line in lines]
    for row in rows:
        # Colours have no width, so they are put in after the padding.
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        painted = [
            colors.paint(cell, value) if column.is_state else cell
            for cell, value, column in zip(cells, row, columns, strict=True)
        ]
        text.append("  ".join(painted).rstrip())
    return "".join(f"{line}\n" for line in text)


def _padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def single_line(text: str) -> str:
    """``text`` on one line, with one space between words."""
    return " ".join(text.split())
