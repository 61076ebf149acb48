"""JSON objects on disk that carry a digest of themselves.

Decides where the digest is, and that a changed byte makes the text unreadable instead of another
valid value. Must not know what the objects are. A text without a digest, as older releases wrote
it, is read as it is.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

_FIELD = "sha256"
_SEAL = re.compile(r', "(.{6})": "([0-9a-f]{64})"\}\s*\Z')


def seal(text: str) -> str:
    """``text``: a JSON object with at least one field, without the field ``sha256``."""
    return f'{text[:-1]}, "{_FIELD}": "{_digest(text)}"}}'


def unseal(text: str) -> Any:
    """The object, without the digest. Raises ValueError if the text is not JSON or not what was
    sealed."""
    found = _SEAL.search(text)
    wrong = len(_FIELD) if found is None else sum(a != b for a, b in zip(found[1], _FIELD, strict=True))
    if found is not None and not wrong:
        text = text[: found.start()] + "}"
        if _digest(text) != found[2]:
            raise ValueError("the content has changed since it was written")
    value = json.loads(text)
    if wrong == 1 or (isinstance(value, dict) and _FIELD in value):
        raise ValueError("the digest at the end is damaged")
    return value


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
