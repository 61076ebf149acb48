"""Colours of the states of resources.

Decides which colour a state has, and where there are colours: only on a terminal, never with
``NO_COLOR`` (no-color.org) or ``TERM=dumb``. Must not know what has the state.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TextIO

_GREEN, _YELLOW, _RED = "32", "33", "31"
#: The states of endpoints, deployments, computes, nodes and servers, in lower case.
_STATES: Mapping[str, str] = {
    **dict.fromkeys(("succeeded", "running", "promoting", "idle", "ready"), _GREEN),
    **dict.fromkeys(
        (
            "creating",
            "updating",
            "scaling",
            "deleting",
            "starting",
            "waiting",
            "preparing",
            "paused",
            "inconclusive",
            "nodata",
        ),
        _YELLOW,
    ),
    **dict.fromkeys(("failed", "canceled", "unhealthy", "unusable", "stopped", "rolledback", "aborted"), _RED),
}


def enabled(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether text for ``stream`` may have colours."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def paint(text: str, state: str) -> str:
    """``text`` in the colour of ``state``; unchanged for a state without one."""
    color = _STATES.get(state.lower())
    return text if color is None else f"\x1b[{color}m{text}\x1b[0m"
