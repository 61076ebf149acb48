"""Values of options of ``az monitor autoscale`` that are no plain texts or numbers.

Decides what is refused before anything is sent. Must not know requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amphitrite.schemas.errors import Error

_TRUE, _FALSE = ("true", "t", "yes", "y", "1", "on"), ("false", "f", "no", "n", "0", "off")


def flag(option: str, text: str) -> bool:
    """A three-state flag of ``az``. Raises Error UsageError."""
    if text.lower() not in (*_TRUE, *_FALSE):
        raise Error("UsageError", f"{option} is {text[:40]!r}; allowed: true, false", target=option)
    return text.lower() in _TRUE


def refuse_messages(action: Sequence[str] | None, administrator: bool, coadministrators: bool) -> None:
    """Raises Error Unsupported for a notification."""
    for option, given in (
        ("--action", action),
        ("--email-administrator", administrator),
        ("--email-coadministrators", coadministrators),
    ):
        if given:
            hint = "`ml monitor autoscale show` says what a setting comes to, and why"
            raise Error("Unsupported", f"{option}: this server sends no messages", target=option, hint=hint)


def predictive(mode: str | None, look_ahead: str | None) -> dict[str, Any]:
    """``predictiveAutoscalePolicy``; the server refuses more than Disabled. Raises Error
    UsageError."""
    if mode is None and look_ahead is not None:
        raise Error("UsageError", "--scale-look-ahead-time needs --scale-mode", target="--scale-mode")
    if mode is None:
        return {}
    policy = {"scaleMode": mode, **({"scaleLookAheadTime": look_ahead} if look_ahead else {})}
    return {"predictiveAutoscalePolicy": policy}
