"""The directory in which one instance's server listens on UNIX sockets.

Decides where it is and when it is removed. It belongs to one start of one instance, only its owner
may enter it, and its name is not used twice: what a proxy still has of an earlier start leads
nowhere. Must not know who listens in it.
"""

from __future__ import annotations

import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from amphitrite.controlplane.settings.home import Home
from amphitrite.dataplane.triton.command_line import LONGEST_SOCKET_NAME

_PREFIX = "i-"


def create(home: Home) -> Path:
    """A new directory with mode 0700. Raises OSError, and Error("BadArgument") if another user has
    taken its parent."""
    path = _parent(home) / _new_name()
    path.mkdir(mode=0o700)
    return path


def remove(path: Path) -> None:
    """With all sockets in it."""
    shutil.rmtree(path, ignore_errors=True)


def remove_all(home: Home, needed: frozenset[Path] = frozenset()) -> None:
    """Removes all directories of ``home`` but those that are ``needed``."""
    parent = _parent(home)
    for path in parent.glob(f"{_PREFIX}*"):
        if path not in needed:
            remove(path)
    with suppress(OSError):  # The agent may have its sockets there.
        parent.rmdir()


def _parent(home: Home) -> Path:
    return home.socket_directory(f"{_new_name()}/{LONGEST_SOCKET_NAME}")


def _new_name() -> str:
    return f"{_PREFIX}{secrets.token_hex(4)}"
