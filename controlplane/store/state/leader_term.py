"""The term of the leader that writes: a number in the database that fences off earlier leaders.

Decides that a process which has led writes nothing more once another one has begun its term. The
time of a Lease cannot decide that: a process may be suspended between its check and its write. Must
not know how a leader is elected.
"""

from __future__ import annotations

from sqlalchemy import Connection, insert, select, update

from amphitrite.controlplane.store.sql.tables import leader_terms
from amphitrite.schemas.errors import Error

_ROW = 1


class LeaderTerm:
    """The term of this process. A process without one is not fenced: it has never led."""

    def __init__(self) -> None:
        self._term: int | None = None

    def begin(self, connection: Connection) -> None:
        """Begins a term after all others."""
        newest = _newest(connection)
        term = (newest or 0) + 1
        if newest is None:
            connection.execute(insert(leader_terms).values(id=_ROW, term=term))
        else:
            connection.execute(update(leader_terms).where(leader_terms.c.id == _ROW).values(term=term))
        self._term = term

    def require(self, connection: Connection) -> None:
        """Raises Error Conflict if another process has begun a term since."""
        if self._term is not None and _newest(connection) != self._term:
            raise former_leader()


def former_leader() -> Error:
    """What a process that has led is told when it goes on to act."""
    return Error("Conflict", "this control plane no longer leads; the new leader continues")


def _newest(connection: Connection) -> int | None:
    return connection.execute(select(leader_terms.c.term).where(leader_terms.c.id == _ROW)).scalar()
