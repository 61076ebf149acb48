"""A model's files of an instance's own, for one that may write to what it reads.

Decides that they are copies, which share blocks with the store's files where the file system can do
that, and never hard links: a write through one would change the model of every other instance. Must
not know what the files are for.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

_NAME, _UNFINISHED = "model-files", ".model-files"
#: ``_IOW(0x94, 9, int)`` of linux/fs.h.
_FICLONE = 0x40049409


def own_files(instance: Path, files: Path) -> Path:
    """The copy of ``files`` in the directory ``instance``; made once. Raises OSError, and leaves
    nothing then: on a full disk the store could write nothing either."""
    final, unfinished = instance / _NAME, instance / _UNFINISHED
    if final.is_dir():
        return final
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        shutil.copytree(files, unfinished, copy_function=_copy)
        unfinished.rename(final)
    except OSError as exc:
        shutil.rmtree(unfinished, ignore_errors=True)
        if isinstance(exc, shutil.Error):  # It lists (source, target, reason) of each file.
            raise OSError(exc.args[0][0][2]) from exc
        raise
    return final


def _copy(source: str, target: str) -> None:
    with open(source, "rb") as original, open(target, "xb") as copy:
        try:
            fcntl.ioctl(copy, _FICLONE, original.fileno())
        except OSError:
            shutil.copyfile(source, target)  # Another file system, or one that cannot share blocks.
        os.fchmod(copy.fileno(), 0o444)
