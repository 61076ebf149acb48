"""Text from outside, on one line of a log or a terminal.

Decides which characters are replaced by an escape: those that end a line, move the cursor, or turn
the direction of writing. So a path or a name cannot pretend to be another line, or hide one. Must
not know where the text comes from.
"""

from __future__ import annotations

import re

#: C0 and C1 controls, the separators of lines and paragraphs, marks of direction, surrogates.
_CONTROLS = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_ALL = re.compile(f"[{_CONTROLS}]")
_WITHIN_LINES = re.compile(f"(?![\n\t])[{_CONTROLS}]")


def one_line(text: str) -> str:
    """``text`` with every such character as JSON writes it, such as ``\\u000a``."""
    return _ALL.sub(_escape, text) if not (text.isascii() and text.isprintable()) else text


def lines(text: str) -> str:
    """``text``, whose line ends and tabs are meant, without the other such characters."""
    return _WITHIN_LINES.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
