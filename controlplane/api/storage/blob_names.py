"""Which names blobs may be given.

Decides what is refused although the store, to which a name is only a key, could hold it: what no file of a model can be
called, what a list of blobs in XML cannot say, and whatever looks like a way out of a directory, however it is encoded.
Must not know what a name stands for.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, unquote_to_bytes

from amphitrite.schemas.errors import Error

#: What XML and therefore a list of blobs cannot say.
_UNSPEAKABLE = re.compile("[\x00-\x1f\x7f\ufffe\uffff]")
#: Bytes of one file name on Linux file systems.
_PART_MAX = 255
#: A name that has been encoded more often than this was made to deceive.
_ENCODINGS_MAX = 8


def check(path: str, raw_path: bytes | None) -> None:
    """``path``: decoded; ``raw_path``: of the whole request, as it was sent. Raises Error("InvalidResourceName")."""
    if raw_path is not None and not _is_text(raw_path):
        raise _refused(path, "its bytes are not UTF-8")
    if _UNSPEAKABLE.search(path):
        raise _refused(path, "it has characters that no name of a blob can have")
    parts = path.split("/")
    if "" in parts:
        raise _refused(path, "it begins or ends with a slash, or has two in a row")
    if any(len(part.encode("utf-8", "surrogatepass")) > _PART_MAX for part in parts):
        raise _refused(path, f"a part of it is longer than {_PART_MAX} bytes")
    if _leads_out(path):
        raise _refused(path, "a part of it is '.' or '..'")


def _is_text(raw_path: bytes) -> bool:
    try:
        unquote_to_bytes(raw_path.split(b"?")[0]).decode()
    except UnicodeDecodeError:
        return False
    return True


def _leads_out(path: str) -> bool:
    """Also behind backslashes, and when somebody decodes it once more."""
    for _ in range(_ENCODINGS_MAX):
        if any(part in (".", "..") for part in re.split(r"[/\\]", path)):
            return True
        decoded = unquote(path)
        if decoded == path:
            return False
        path = decoded
    return True


def _refused(path: str, why: str) -> Error:
    shown = path if len(path) <= 80 else f"{path[:80]}…"
    hint = "a name is a relative path of a file: parts with a slash between them"
    return Error("InvalidResourceName", f"{shown!r} is no name of a blob: {why}", target=shown, hint=hint)
