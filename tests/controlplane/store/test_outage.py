"""PostgreSQL goes away and comes back: what is asked meanwhile is refused, what is asked then
works."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from amphitrite.controlplane.store.sql.transactions import CONTROL_PLANE, Database
from amphitrite.controlplane.store.state.database import SqlStore, open_store
from amphitrite.schemas.errors import Error

from ... import postgresql
from ...waiting import DEADLINE_S, wait_until
from .test_sharing import put

pytestmark = pytest.mark.postgresql


@pytest.fixture(scope="module")
def server() -> postgresql.Server:
    return postgresql.own_server()


@pytest.fixture
def store(server: postgresql.Server) -> Iterator[SqlStore]:
    opened = open_store(server.create_database())
    yield opened
    opened.close()


def test_the_next_transaction_after_an_outage_works(server: postgresql.Server, store: SqlStore) -> None:
    heard, lost = threading.Semaphore(0), threading.Event()
    end = store.database.listen(heard.release)
    assert heard.acquire(timeout=DEADLINE_S)
    password = str(store.database.url.password)
    with store.database.hold_named_lock(CONTROL_PLANE, lost.set):
        put(store)
        server.stop()
        for refused in (store.list_endpoints, lambda: put(store, "ep2"), lambda: store.exclusive().__enter__()):
            with pytest.raises(Error) as caught:
                refused()
            assert caught.value.code == "RuntimeUnavailable"
            assert password not in str(caught.value.to_body()) + str(caught.value.__cause__)
        server.start()
        put(store, "ep2")
        assert [r.name for r in store.list_endpoints()] == ["ep1", "ep2"]
        assert heard.acquire(timeout=DEADLINE_S)  # It listens again, and said so, as changes may have been missed.
        other = Database(store.database.url)
        wait_until(lambda: _is_held(other), "somebody holds it")
        assert not lost.is_set()
        other.close()
    end()


def test_what_was_under_way_is_refused_and_leaves_nothing(server: postgresql.Server, store: SqlStore) -> None:
    with pytest.raises(Error) as caught, store.exclusive():
        server.stop()
        server.start()
        put(store)
    assert caught.value.code == "RuntimeUnavailable"
    assert store.list_endpoints() == []
    with store.exclusive():
        put(store)


def test_a_store_cannot_be_opened_meanwhile(server: postgresql.Server, store: SqlStore) -> None:
    url = store.database.url.render_as_string(hide_password=False)
    server.stop()
    with pytest.raises(Error) as caught:
        open_store(url)
    with pytest.raises(Error) as alone, store.database.hold_named_lock(CONTROL_PLANE):
        pass
    assert caught.value.code == alone.value.code == "RuntimeUnavailable"
    server.start()
    open_store(url).close()


def _is_held(database: Database) -> bool:
    """Looked at, not tried: whoever tries would stand in the way of the one who takes it again."""
    held = text(
        "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database "
        "WHERE datname = current_database() AND locktype = 'advisory' AND granted"
    )
    with database.read() as connection:
        return bool(connection.execute(held).scalar())
