"""Revisions of documents in the database: what is kept, for how long, and by whom."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import delete

from amphitrite.controlplane.core.history.revisions import Author
from amphitrite.controlplane.core.observed.status import Ref
from amphitrite.controlplane.store.sql.tables import revisions
from amphitrite.controlplane.store.state import revision_rows
from amphitrite.controlplane.store.state.database import SqlStore
from amphitrite.schemas.errors import Error

EP, BLUE = Ref("ep"), Ref("ep", "blue")


def put(store: SqlStore, now: float = 1.0, by: Author | None = None, **fields: Any) -> None:
    document = {"name": "ep", **fields}
    store.put_endpoint(document, if_match=None, if_none_match=False, now=now, by=by or Author())


def deploy(store: SqlStore, count: int = 1) -> None:
    document, model = {"name": "blue", "instance_count": count}, {"name": "m", "version": "1"}
    store.put_deployment("ep", document, model, if_match=None, if_none_match=False, now=1.0)


def test_each_document_that_differs_is_kept_with_its_author(store: SqlStore) -> None:
    put(store)
    put(store, 2.0, Author("ada@lab", "größer"), traffic={"blue": 100})
    put(store, 3.0, Author("bob"), traffic={"blue": 100})  # Unchanged.
    store.regenerate_key("ep", "primary", now=4.0)  # No document.
    put(store, 5.0, Author("ada@lab", cause="undo"))
    found = [(one.number, one.at, one.author, one.reason, one.cause) for one in store.revisions(Ref("EP"))]
    assert found == [
        (1, 1.0, "", "", "create"), (2, 2.0, "ada@lab", "größer", "update"), (4, 5.0, "ada@lab", "", "undo"),
    ]  # fmt: skip
    assert store.revisions(EP)[1].document["traffic"] == {"blue": 100}


def test_a_refused_change_is_no_revision(store: SqlStore) -> None:
    put(store)
    with pytest.raises(Error, match="already exists"):
        store.put_endpoint({"name": "ep", "tags": {}}, if_match=None, if_none_match=True, now=2.0)
    assert [one.number for one in store.revisions(EP)] == [1]


def test_what_was_there_before_revisions_were_kept_can_be_gone_back_to(store: SqlStore) -> None:
    put(store, traffic={"blue": 100})
    with store.database.write() as connection:
        connection.execute(delete(revisions))
    assert store.revisions(EP) == []
    put(store, 2.0, traffic={"green": 100})
    assert [(one.number, one.at, one.cause) for one in store.revisions(EP)] == [(1, 1.0, "earlier"), (2, 2.0, "update")]


def test_the_oldest_go_first(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revision_rows, "KEPT_OF_ENDPOINT", 4)
    monkeypatch.setattr(revision_rows, "KEPT_OF_DEPLOYMENT", 3)
    put(store)
    for count in range(1, 7):
        deploy(store, count)
        put(store, tags={"n": str(count)})
    assert [one.document["instance_count"] for one in store.revisions(BLUE)] == [4, 5, 6]
    assert [one.document["tags"]["n"] for one in store.revisions(EP)] == ["3", "4", "5", "6"]


def test_they_go_with_their_resource(store: SqlStore) -> None:
    put(store)
    deploy(store)
    store.delete(BLUE, if_match=None, now=2.0)
    store.remove([BLUE], now=2.0)
    for missing in (BLUE, Ref("none")):
        with pytest.raises(Error, match=r"has no deployment|does not exist"):
            store.revisions(missing)
    deploy(store, 2)
    assert [one.document["instance_count"] for one in store.revisions(BLUE)] == [2]
    assert len(store.revisions(EP)) == 1
