"""That no control plane works on a database, for as long as somebody moves what is in it.

Decides how a control plane that runs is recognised: by the lock of its home, by the name that it holds on the
database, and on PostgreSQL by its connections. Must not know what is moved.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from amphitrite.controlplane.settings.home import Home
from amphitrite.controlplane.store.sql.transactions import CONTROL_PLANE, Database
from amphitrite.schemas.errors import Error


@contextmanager
def alone_on(database: Database, home: Home) -> Iterator[None]:
    """None can start meanwhile. ``home``: ours, whose control plane does not run either. Raises Error Conflict while
    one works on it."""
    with database.hold_named_lock(CONTROL_PLANE):
        if database.other_connections():
            message = f"other programs of amphitrite are connected to {database.place}"
            raise Error("Conflict", message, target=database.place, hint="end its control planes first")
        file_of = home if database.is_shared else Home(Path(database.place).parent)
        homes = {one.root: one for one in (home, file_of)}
        with ExitStack() as stack:
            for one in homes.values():
                stack.enter_context(_locked(one))
            yield


@contextmanager
def _locked(home: Home) -> Iterator[None]:
    """Hold the lock that a control plane of ``home`` holds. Raises Error Conflict while one runs; nothing is made where
    there is no home."""
    try:
        descriptor = os.open(home.lock_file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            message = f"a control plane of {home.root} runs"
            raise Error("Conflict", message, target=str(home.root), hint="ml server stop") from exc
        yield
    finally:
        os.close(descriptor)
