"""The part of a terminal that ``ml`` and a shell use: text, colours, a line that is rewritten.

Decides what stands on the screen after some output. Must not know where output comes from, nor how
a screen is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar

#: (character, SGR style such as ``31`` or the empty text).
Cell = tuple[str, str]
Row = tuple[Cell, ...]

_ESCAPE = re.compile(r"\x1b(?:\[(?P<arguments>[0-9;?>]*)(?P<final>[A-Za-z])|\][^\x07]*\x07|[=>78()B])")


class Screen:
    """``columns``: its width. It grows downwards without end."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._rows: list[list[Cell]] = [[]]
        self._row = self._column = 0
        self._style = ""

    def rows(self) -> tuple[Row, ...]:
        """All rows, without spaces at their ends and without empty rows at the end."""
        rows = [tuple(row) for row in self._rows]
        rows = [row[: len("".join(char for char, _ in row).rstrip())] for row in rows]
        while rows and not rows[-1]:
            rows.pop()
        return tuple(rows)

    def feed(self, text: str) -> None:
        """Write ``text`` at the cursor."""
        at = 0
        while at < len(text):
            if match := _ESCAPE.match(text, at):
                at = match.end()
                self._escape(match["arguments"] or "", match["final"] or "")
                continue
            char, at = text[at], at + 1
            if char in self._CONTROLS:
                self._CONTROLS[char](self)
            elif char >= " ":
                self._put(char)

    def _put(self, char: str) -> None:
        if self._column == self._columns:
            self._line_feed()
            self._column = 0
        row = self._rows[self._row]
        row.extend([(" ", "")] * (self._column + 1 - len(row)))
        row[self._column] = (char, self._style)
        self._column += 1

    def _escape(self, arguments: str, final: str) -> None:
        if final == "m":
            self._style = "" if arguments in ("", "0") else arguments
        elif final == "K" and arguments in ("", "0"):
            del self._rows[self._row][self._column :]

    def _line_feed(self) -> None:
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append([])

    def _carriage_return(self) -> None:
        self._column = 0

    def _tab(self) -> None:
        self._column = min(self._columns - 1, self._column // 8 * 8 + 8)

    def _backspace(self) -> None:
        self._column = max(0, self._column - 1)

    _CONTROLS: ClassVar[dict[str, Callable[[Screen], None]]] = {
        "\n": _line_feed,
        "\r": _carriage_return,
        "\b": _backspace,
        "\t": _tab,
    }
