"""Random text for keys and tokens.

Decides the characters: letters and digits, which need no escaping in a URL, a header or a shell.
URL-safe Base64 does not do: every 64th key would begin with ``-``, and ``score.py --token $KEY``,
as in Azure's examples, would read it as an option. Must not know what a key authorizes.
"""

from __future__ import annotations

import secrets
import string

_CHARACTERS = string.ascii_letters + string.digits


def random_text(length: int) -> str:
    """``length`` characters of 5.95 bits each, from the system's random generator."""
    return "".join(secrets.choice(_CHARACTERS) for _ in range(length))
