"""Valid names of blobs.

Decides what is refused although the store could hold it: names that no model file can have, names
that XML cannot contain, and path traversal in any encoding. Must not know what a name stands for.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, unquote_to_bytes

from amphitrite.schemas.errors import Error

#: Characters that XML, and so a list of blobs, cannot contain.
_INVALID_XML = re.compile("[\x00-\x1f\x7f\ufffe\uffff]")
#: The maximum bytes of a file name on Linux file systems.
_PART_MAX = 255
#: A name that is percent-encoded more often than this is an attack.
_ENCODINGS_MAX = 8


def check(path: str, raw_path: bytes | None) -> None:
    """``path``: decoded. ``raw_path``: of the whole request, as sent. Raises
    Error("InvalidResourceName")."""
    if raw_path is not None and not _is_text(raw_path):
        raise _invalid_name(path, "it is not valid UTF-8")
    if _INVALID_XML.search(path):
        raise _invalid_name(path, "it contains characters that blob names cannot contain")
    parts = path.split("/")
    if "" in parts:
        raise _invalid_name(path, "it begins or ends with a slash, or contains two in a row")
    if any(len(part.encode("utf-8", "surrogatepass")) > _PART_MAX for part in parts):
        raise _invalid_name(path, f"one of its parts is longer than {_PART_MAX} bytes")
    if _escapes(path):
        raise _invalid_name(path, "one of its parts is '.' or '..'")


def _is_text(raw_path: bytes) -> bool:
    try:
        unquote_to_bytes(raw_path.split(b"?")[0]).decode()
    except UnicodeDecodeError:
        return False
    return True


def _escapes(path: str) -> bool:
    """Whether it leaves its directory, also with backslashes or after further decoding."""
    for _ in range(_ENCODINGS_MAX):
        if any(part in (".", "..") for part in re.split(r"[/\\]", path)):
            return True
        decoded = unquote(path)
        if decoded == path:
            return False
        path = decoded
    return True


def _invalid_name(path: str, why: str) -> Error:
    shown = path if len(path) <= 80 else f"{path[:80]}…"
    hint = "use a relative file path, with parts separated by single slashes"
    return Error("InvalidResourceName", f"{shown!r} is not a valid blob name: {why}", target=shown, hint=hint)
