"""A PostgreSQL database, which several control planes share.

Decides the timeouts, the locks between control planes, and how they notify each other of changes.
Must not know tables.

The locks are PostgreSQL's advisory locks: ``lock_writes`` for one write transaction, ``exclusive``
for several, and ``hold_named_lock`` for a process's lifetime. The last two belong to a session, so
a connection pooler in transaction mode must not stand between.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from amphitrite.controlplane.store.sql.json_text import json_serializer
from amphitrite.controlplane.store.sql.postgresql_session import PersistentSession, Stop
from amphitrite.schemas.errors import Error

if TYPE_CHECKING:
    import psycopg

#: The prefix of ``application_name`` for all sessions: see :meth:`Postgresql.other_connections`.
APPLICATION = "amphitrite"
CHANNEL = "amphitrite_changed"
QUEUE_TIMEOUT_S = 30.0
#: Client settings (libpq). A peer that disappears, such as a lost node, is detected after 5 + 3 * 2
#: s on either side, so its locks are soon released.
_CLIENT = {
    "connect_timeout": "5",
    "client_encoding": "utf8",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "11000",
}
#: Server settings of our sessions: timeouts in milliseconds, keepalives in seconds.
_SERVER = {
    "statement_timeout": 60_000,
    "lock_timeout": 30_000,
    "idle_in_transaction_session_timeout": 120_000,
    "tcp_keepalives_idle": 5,
    "tcp_keepalives_interval": 2,
    "tcp_keepalives_count": 3,
    "tcp_user_timeout": 11_000,
}
#: Only a transaction that has written has a transaction ID, so others notify nobody.
_NOTIFY = text(f"SELECT pg_notify('{CHANNEL}', :origin) WHERE pg_current_xact_id_if_assigned() IS NOT NULL")


class Postgresql:
    """Implements ``transactions.Backend``. Parameters in the URL override our settings."""

    hint = "check that PostgreSQL runs and is reachable; changes in progress are retried"
    queue_timeout_s = QUEUE_TIMEOUT_S

    def __init__(self, url: URL) -> None:
        self.place = f"postgresql://{url.host or ''}/{url.database or ''}"
        self._origin = uuid.uuid4().hex
        self._url = _with_settings(url, f"{APPLICATION}/{self._origin[:8]}")
        try:
            self.engine = create_engine(
                self._url,
                pool_size=4,
                max_overflow=12,
                pool_timeout=10.0,
                pool_pre_ping=True,
                pool_use_lifo=True,
                hide_parameters=True,
                json_serializer=json_serializer,
            )
        except ImportError as exc:
            message = "the PostgreSQL driver is not installed"
            hint = "in a checkout of amphitrite: pip install '.[cluster]'"
            raise Error("Unsupported", message, target="database", hint=hint) from exc
        self.readers: Engine = self.engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        # Each statement sees what was committed before it, so everything that was committed before
        # the lock.
        self.writers: Engine = self.engine.execution_options(isolation_level="READ COMMITTED")

    def lock_writes(self, connection: Connection) -> None:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": lock_key("write")})

    def notify_change(self, connection: Connection) -> None:
        connection.execute(_NOTIFY, {"origin": self._origin})

    @contextmanager
    def exclusive(self) -> Iterator[Connection]:
        key = {"key": lock_key("exclusive")}
        with self.writers.connect() as connection:
            with connection.begin():
                connection.execute(text("SELECT pg_advisory_lock(:key)"), key)
            try:
                yield connection
            finally:
                try:
                    with connection.begin():
                        connection.execute(text("SELECT pg_advisory_unlock(:key)"), key)
                except DBAPIError:  # The connection is lost, and the lock with it.
                    connection.invalidate()

    @contextmanager
    def hold_named_lock(self, name: str, lost: Callable[[], None]) -> Iterator[None]:
        def hold(connection: psycopg.Connection[Any]) -> None:
            query = "SELECT pg_try_advisory_lock(%s)"
            row = connection.execute(query, (lock_key(f"alone {name}"),)).fetchone()
            if row is None or not row[0]:
                raise Stop

        session = PersistentSession(f"hold {name}", self._connect, hold, lambda _: None, lost)
        try:
            session.start()
        except Stop:
            raise Error("Conflict", f"another {name} uses the database {self.place}", target=self.place) from None
        except OSError as exc:
            raise Error("RuntimeUnavailable", str(exc), target=self.place, hint=self.hint) from exc
        try:
            yield
        finally:
            session.close()

    def listen(self, on_change: Callable[[], None]) -> Callable[[], None]:
        def listening(connection: psycopg.Connection[Any]) -> None:
            connection.execute(f"LISTEN {CHANNEL}")
            on_change()

        def notified(origins: set[str]) -> None:
            if origins != {self._origin}:
                on_change()

        session = PersistentSession("listen", self._connect, listening, notified, lambda: None)
        session.start_later()
        return session.close

    def other_connections(self) -> int:
        own_name = f"{APPLICATION}/{self._origin[:8]}"
        query = text(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name LIKE :ours AND application_name <> :mine"
        )
        with self.readers.begin() as connection:
            return int(connection.execute(query, {"ours": f"{APPLICATION}/%", "mine": own_name}).scalar() or 0)

    def _connect(self) -> psycopg.Connection[Any]:
        import psycopg

        _, settings = self.engine.dialect.create_connect_args(self._url)
        return psycopg.connect(**settings, autocommit=True)


def lock_key(name: str) -> int:
    """The number of an advisory lock: a signed 64-bit integer."""
    digest = hashlib.sha256(f"{APPLICATION} {name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def _with_settings(url: URL, application: str) -> URL:
    query = {**_CLIENT, "application_name": application, **url.query}
    options = url.query.get("options", "")
    defaults = " ".join(f"-c {name}={value}" for name, value in _SERVER.items())
    query["options"] = f"{defaults} {options if isinstance(options, str) else ' '.join(options)}".strip()
    return url.set(query=query)
