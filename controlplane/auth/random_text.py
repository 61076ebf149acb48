"""Random text for keys and tokens.

Decides what they are made of: letters and digits, which need no escaping in an address, a header or a shell. Base64 for
addresses is not good enough: every sixty-fourth key would begin with ``-``, and ``score.py --token $KEY``, as Azure's
examples have it, would take that for an option. Must not know what a key opens.
"""

from __future__ import annotations

import secrets
import string

_CHARACTERS = string.ascii_letters + string.digits


def random_text(length: int) -> str:
    """So many characters of 5.95 bits each, from the system's generator."""
    return "".join(secrets.choice(_CHARACTERS) for _ in range(length))
