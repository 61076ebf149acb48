"""Recordings as SVG: one picture that plays what a terminal has shown.

Decides the look, and that a row which stays the same is drawn once. Without animation the last
screen is shown. Must not know how it was recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from xml.sax.saxutils import escape

import screen

#: What is on the screen from this second on.
Frame = tuple[float, tuple[screen.Row, ...]]

_CELL, _LINE, _MARGIN = 7.8, 18, 12
_BACKGROUND, _TEXT = "#1c2128", "#d6dde5"
_COLORS: Mapping[str, str] = {"31": "#ff8b80", "32": "#7ee08a", "33": "#f0c674", "1": "#ffffff"}
#: Seconds for which the last screen stays before the recording begins again.
_END_S = 5.0


def svg(frames: Sequence[Frame], columns: int, title: str) -> str:
    """The picture of a recording. ``frames``: at least one, by time, beginning at 0."""
    height = max(len(rows) for _, rows in frames)
    times = [at for at, _ in frames]
    length = times[-1] + _END_S
    wide, high = columns * _CELL + 2 * _MARGIN, height * _LINE + 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high:.0f}" width="{wide:.0f}" '
        f'font-family="ui-monospace,Menlo,Consolas,\'DejaVu Sans Mono\',monospace" font-size="13">',
        f"<title>{escape(title)}</title>",
        f'<rect width="100%" height="100%" rx="6" fill="{_BACKGROUND}"/>',
    ]
    for number in range(height):
        contents = [rows[number] if number < len(rows) else () for _, rows in frames]
        for row in dict.fromkeys(contents):
            if row:
                shown = [content == row for content in contents]
                parts.append(_row(row, number, _animation(shown, times, length), shown[-1]))
    return "\n".join([*parts, "</svg>", ""])


def _row(row: screen.Row, number: int, animation: str, last: bool) -> str:
    y = _MARGIN + number * _LINE + 13
    hidden = "" if last else ' visibility="hidden"'
    return f'<g fill="{_TEXT}"{hidden}>{animation}{"".join(_texts(row, y))}</g>'


def _texts(row: screen.Row, y: int) -> Iterator[str]:
    """A text for each run of one style. Each has its width, so that columns stay in line."""
    column = 0
    for style, cells in groupby(row, key=lambda cell: cell[1]):
        text = "".join(char for char, _ in cells)
        words = text.strip()
        if words:
            x = _MARGIN + (column + len(text) - len(text.lstrip())) * _CELL
            color = f' fill="{_COLORS[style]}"' if style in _COLORS else ""
            yield (
                f'<text x="{x:.1f}" y="{y}" textLength="{len(words) * _CELL:.1f}" xml:space="preserve"{color}>'
                f"{escape(words)}</text>"
            )
        column += len(text)


def _animation(shown: Sequence[bool], times: Sequence[float], length: float) -> str:
    """Nothing for a row that is always there."""
    if all(shown):
        return ""
    changes = [i for i in range(len(shown)) if i == 0 or shown[i] != shown[i - 1]]
    values = ";".join("visible" if shown[i] else "hidden" for i in changes)
    keys = ";".join(f"{times[i] / length:.4f}".rstrip("0").rstrip(".") or "0" for i in changes)
    return (
        f'<animate attributeName="visibility" values="{values}" keyTimes="{keys}" dur="{length:.1f}s" '
        'calcMode="discrete" repeatCount="indefinite"/>'
    )
