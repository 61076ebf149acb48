"""The tables of ``docs/clients.md`` that tests write.

Decides where they stand and what a row looks like. Must not know what was run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"


def row(client: str, version: str, passed: Iterable[str], columns: Sequence[str]) -> str:
    """One client: "yes" for what it was asked, "-" for what it has no way to ask."""
    had = set(passed)
    return _line([client, version, *("yes" if name in had else "-" for name in columns)])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join([_line(head), "|---" * len(head) + "|", *map(_line, rows)])


def merge(name: str, columns: Sequence[str], rows: Iterable[str], order: Sequence[str]) -> str:
    """The table with these rows, in this order, and with the page's own for all others."""
    found = {_cells(line)[0]: line for line in section(name).splitlines()[2:]}
    found |= {_cells(line)[0]: line for line in rows}
    return "\n".join(
        [_line(columns), "|---" * len(columns) + "|", *(found[client] for client in order if client in found)]
    )


def section(name: str) -> str:
    """What stands there now."""
    return _split(name)[1].strip()


def compare(name: str, wanted: str, request: pytest.FixtureRequest, *, versions: bool = True) -> None:
    """The section is ``wanted``, or becomes it with ``--update-golden``. ``versions``: whether the
    second column counts: another machine has other versions."""
    before, now, after = _split(name)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(f"{before}\n{wanted}\n{after}", encoding="utf-8")
        return
    assert _read(now, versions) == _read(wanted, versions), "pytest --update-golden writes docs/clients.md"


def _split(name: str) -> tuple[str, str, str]:
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
    now, _, after = rest.partition(end)
    return before + begin, now, end + after


def _read(text: str, versions: bool) -> list[list[str]]:
    rows = [_cells(line) for line in text.strip().splitlines()]
    return rows if versions else [[cell for at, cell in enumerate(cells) if at != 1] for cells in rows]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
