"""Exclusive access to a database, without any control plane, while its content is moved.

Decides how a running control plane is detected: by the lock of its home, by its lock on the
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
def exclusive(database: Database, home: Home) -> Iterator[None]:
    """A block during which no control plane can start. ``home``: our home, whose control plane must
    not run either.

    Raises Error Conflict if a control plane uses the database.
    """
    with database.hold_named_lock(CONTROL_PLANE):
        if database.other_connections():
            message = f"other programs of amphitrite are connected to {database.place}"
            raise Error("Conflict", message, target=database.place, hint="stop its control planes first")
        file_of = home if database.is_shared else Home(Path(database.place).parent)
        homes = {one.root: one for one in (home, file_of)}
        with ExitStack() as stack:
            for one in homes.values():
                stack.enter_context(_locked(one))
            yield


@contextmanager
def _locked(home: Home) -> Iterator[None]:
    """Holds the lock of a control plane of ``home``. Does nothing if the home does not exist.

    Raises Error Conflict if a control plane runs.
    """
    try:
        descriptor = os.open(home.lock_file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            message = f"a control plane of {home.root} is running"
            raise Error("Conflict", message, target=str(home.root), hint="stop it with `ml server stop`") from exc
        yield
    finally:
        os.close(descriptor)
