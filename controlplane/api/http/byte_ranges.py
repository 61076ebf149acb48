"""The HTTP header ``Range`` with a single byte range (RFC 9110, section 14.2).

Decides the supported form. Must not know what the bytes are.
"""

from __future__ import annotations

import re

from amphitrite.schemas.errors import Error

_RANGE = re.compile(r"bytes=(\d{1,18})-(\d{0,18})\Z")


def read(text: str | None, target: str = "Range") -> tuple[int, int | None] | None:
    """(first, last) of ``bytes=<first>-<last>``, both inclusive; ``last`` is None if it is missing.
    None without a header.

    Raises Error InvalidRange for any other form.
    """
    if text is None:
        return None
    match = _RANGE.match(text)
    if match is None or (match[2] and int(match[2]) < int(match[1])):
        raise Error("InvalidRange", f"the range {text!r} does not have the form bytes=<first>-<last>", target=target)
    return int(match[1]), int(match[2]) if match[2] else None
