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
def exclusive(home: Home, *databases: Database) -> Iterator[None]:
    """A block during which no control plane can start. ``home``: our home, whose control plane must
    not run either. Each home is locked once, though databases may share it.

    Raises Error Conflict if a control plane uses one of the databases.
    """
    with ExitStack() as stack:
        for database in databases:
            stack.enter_context(database.hold_named_lock(CONTROL_PLANE))
            if database.other_connections():
                message = f"other programs of amphitrite are connected to {database.place}"
                raise Error("Conflict", message, target=database.place, hint="stop its control planes first")
        homes = [home, *(Home(Path(database.place).parent) for database in databases if not database.is_shared)]
        for one in {one.root: one for one in homes}.values():
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
