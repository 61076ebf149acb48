"""New stores for tests: the tables are made once in a process and copied, which takes a hundredth
of the time.

Decides nothing that is tested; the way from nothing to the newest tables is
``store/test_migrations.py``'s.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from amphitrite.controlplane.store.state.database import SqlStore, open_store


def new_store(path: Path) -> SqlStore:
    """An SQLite store in a file of its own, empty but for the tables."""
    assert not path.exists(), f"{path} is there"
    path.write_bytes(_tables())
    return open_store(path)


@cache
def _tables() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "store.db"
        open_store(path).close()
        (only,) = Path(directory).iterdir()  # No journal is left beside it.
        return only.read_bytes()
