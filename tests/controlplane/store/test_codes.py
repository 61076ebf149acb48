"""Versions of code assets, on each database and with each kind of content."""

from __future__ import annotations

from typing import Any

import pytest

from amphitrite.controlplane.core.storage.garbage import AGE_S
from amphitrite.controlplane.store.assets import code_store
from amphitrite.controlplane.store.assets.code_store import CodeStore
from amphitrite.controlplane.store.assets.model_store import ModelStore
from amphitrite.controlplane.store.state.database import SqlStore
from amphitrite.schemas.errors import Error


def code_of(call: Any) -> str:
    with pytest.raises(Error) as caught:
        call()
    return caught.value.code


def test_a_life(store: SqlStore, models: ModelStore, upload: Any, clock: Any) -> None:
    """One test for what does not depend on another, as each database costs its making."""
    assets = CodeStore(store.database, models.blobs)
    first, second, left = (code_store.directory(code_store.new_upload()) for _ in range(3))
    for place, content in ((first, b"run"), (second, b"run"), (left, b"other")):
        upload(f"{place}src/score.py", content)

    def put(name: str, place: str, hash: str | None = "h1", now: float = 1.0, **more: Any) -> Any:
        document = {"name": name, "version": "1", "path": f"https://x/{place}src", **more}
        return assets.put_version(name, "1", document, f"{place}src", hash=hash, now=now)

    found, created = put("Mine", first)
    assert created and (found.name, found.hash, found.document["path"]) == ("Mine", "h1", f"https://x/{first}src")
    assert "digest" not in found.document
    assert assets.get_version("MINE", "1") == found
    assert [one.name for one in assets.versions_with_hash("h1")] == ["Mine"] and assets.versions_with_hash("h2") == []
    assert [one.version for one in assets.list_versions("mine")] == ["1"] and assets.list_versions("none") == []
    # The same files elsewhere are the same content, and the first address stays; others are
    # refused.
    again, created = put("mine", second, now=2.0, description="d")
    assert (created, again.document["path"], again.modified_at) == (False, found.document["path"], 2.0)
    assert code_of(lambda: put("mine", left)) == "UserError"
    assert code_of(lambda: put("none", code_store.directory("0" * 32))) == "UserError"
    assert code_of(lambda: assets.get_version("none", "1")) == "ResourceNotFound"
    # An upload is closed by the version that has it.
    assert code_of(lambda: assets.require_unregistered(first.split("/")[1])) == "Conflict"
    assets.require_unregistered(second.split("/")[1])
    for name in ("..", "", "A" * 32, first):
        assert code_of(lambda name=name: assets.require_unregistered(name)) == "ResourceNotFound"
    # What no version has goes, as a whole.
    clock.pass_s(AGE_S + 1)
    assert models.collect_garbage(clock(), frozenset()).paths == 2
    assert [blob.path for blob in models.blobs.list().blobs] == [f"{first}src/score.py"]
