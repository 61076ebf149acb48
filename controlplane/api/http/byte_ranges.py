"""HTTP's ``Range`` for one range of bytes.

Decides which spelling is understood. Must not know what the bytes are.
"""

from __future__ import annotations

import re

from amphitrite.schemas.errors import Error

_RANGE = re.compile(r"bytes=(\d{1,18})-(\d{0,18})\Z")


def read(text: str | None, target: str = "Range") -> tuple[int, int | None] | None:
    """(first, last) of ``bytes=<first>-<last>``, both included, ``last`` None when left out; None for None.

    Raises Error InvalidRange for anything else.
    """
    if text is None:
        return None
    match = _RANGE.match(text)
    if match is None or (match[2] and int(match[2]) < int(match[1])):
        raise Error("InvalidRange", f"range {text!r} is not of the form bytes=<first>-<last>", target=target)
    return int(match[1]), int(match[2]) if match[2] else None
