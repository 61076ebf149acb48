"""The blob store against a dictionary, and against every name there is."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from amphitrite.controlplane.store.content.blob_store import BlobStore
from amphitrite.controlplane.store.content.directory_content import ContentDirectory
from amphitrite.controlplane.store.state.database import SqlStore
from amphitrite.schemas.errors import Error

from ...stores import new_store

pytestmark = pytest.mark.slow

PATHS = st.sampled_from(["a", "a/b", "a/b/c", "a.b", "A", "é/ü", "z", "a/../x"])
DATA = st.sampled_from([b"", b"1", b"22", b"333" * 50_000])
IDS = st.sampled_from(["1", "2", "3"])


class AgainstDictionary(RuleBasedStateMachine):
    """Uploads, blocks, commits and listings in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="blobs-"))
        self.blobs_of: dict[str, bytes] = {}
        self.blocks_of: dict[str, dict[str, bytes]] = {}
        self.lists: dict[str, list[str] | None] = {}

    @initialize()
    def open(self) -> None:
        self.store: SqlStore = new_store(self.home / "store.db")
        self.content = ContentDirectory(self.home / "models", time.time)
        self.blobs = BlobStore(self.store.database, self.content)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
        shutil.rmtree(self.home)

    @rule(path=PATHS, data=DATA, overwrite=st.booleans())
    def put(self, path: str, data: bytes, overwrite: bool) -> None:
        with self.blobs.begin() as upload:
            upload.write(data)
            digest, size = upload.finish(hashlib.md5(data).digest())
        try:
            self.blobs.put(path, digest, size, overwrite=overwrite)
        except Error as error:
            assert error.code == "BlobAlreadyExists" and self.blobs_of[path] != data and not overwrite
            return
        if overwrite or path not in self.blobs_of:
            self.blobs_of[path], self.lists[path] = data, None
        assert self.blobs_of[path] == data

    @rule(path=PATHS, data=DATA, block_id=IDS)
    def put_block(self, path: str, data: bytes, block_id: str) -> None:
        upload = self.blobs.begin()
        upload.write(data)
        self.blobs.put_block(path, block_id, upload)
        self.blocks_of.setdefault(path, {})[block_id] = data

    @rule(path=PATHS, ids=st.lists(IDS, max_size=4))
    def commit(self, path: str, ids: list[str]) -> None:
        blocks = self.blocks_of.get(path, {})
        known = all(block_id in blocks for block_id in ids)
        try:
            self.blobs.commit_blocks(path, ids)
        except Error as error:
            assert error.code == "InvalidBlockList" and not known
            return
        if known:
            self.blobs_of[path] = b"".join(blocks[block_id] for block_id in ids)
            self.lists[path] = ids
            self.blocks_of[path] = {}
        else:
            assert self.lists[path] == ids  # The list that made what is there.

    @invariant()
    def is_the_dictionary(self) -> None:
        if hasattr(self, "store"):
            found = self.blobs.list().blobs
            assert {b.path: b"".join(self.blobs.read(b)) for b in found} == self.blobs_of
            assert [b.path for b in found] == sorted(self.blobs_of)

    @invariant()
    def keeps_no_leftovers(self) -> None:
        if hasattr(self, "store"):
            assert list(self.content.temporary.iterdir()) == []
            blocks = sum(len(blocks) for blocks in self.blocks_of.values())
            assert len(list(self.content.blocks.iterdir())) == blocks


AgainstDictionary.TestCase.settings = settings(max_examples=20, stateful_step_count=15, deadline=None)
TestAgainstDictionary = AgainstDictionary.TestCase

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()), max_size=40)
CLIMBING = st.lists(st.sampled_from(["..", ".", "/", "~", "a", "\\", "%2e%2e", "C:"]), max_size=8).map("/".join)


@settings(max_examples=60, deadline=None)
@given(names=st.lists(st.one_of(ANY_TEXT, CLIMBING), min_size=1, max_size=6))
def test_no_name_leads_out_of_the_store(names: list[str], tmp_path_factory: Any) -> None:
    home = tmp_path_factory.mktemp("home")
    store = new_store(home / "store.db")
    content = ContentDirectory(home / "models", time.time)
    blobs = BlobStore(store.database, content)
    taken = set()
    for name in names:
        with blobs.begin() as upload:
            upload.write(name.encode("utf-8", "surrogatepass"))
            digest, size = upload.finish()
        try:
            blobs.put(name, digest, size, overwrite=True)
        except Error as error:
            assert error.code in ("BadArgument", "LimitExceeded")
            continue
        taken.add(name)
        assert b"".join(blobs.read(blobs.head(name))) == name.encode()
    assert {b.path for b in blobs.list().blobs} == taken
    store.close()
    files = {path for path in home.rglob("*") if path.is_file() and path.parent != home}
    assert files == {content.path(path.name) for path in files}


@settings(max_examples=60, deadline=None)
@given(
    paths=st.sets(st.text("ab/.", min_size=1, max_size=5), max_size=12),
    prefix=st.text("ab/", max_size=3),
    delimiter=st.sampled_from(["", "/"]),
    limit=st.integers(1, 4),
)
def test_pages_of_a_listing_add_up(
    paths: set[str], prefix: str, delimiter: str, limit: int, tmp_path_factory: Any
) -> None:
    home = tmp_path_factory.mktemp("home")
    store = new_store(home / "store.db")
    content = ContentDirectory(home / "models", time.time)
    blobs = BlobStore(store.database, content)
    with blobs.begin() as empty:
        digest, size = empty.finish()
    for path in paths:
        blobs.put(path, digest, size, overwrite=True)
    listed, prefixes, marker = [], [], ""
    while True:
        page = blobs.list(prefix, delimiter, marker=marker, limit=limit)
        assert len(page.blobs) + len(page.prefixes) <= limit
        listed += [b.path for b in page.blobs]
        prefixes += page.prefixes
        if page.next_marker is None:
            break
        marker = page.next_marker
    store.close()
    below = sorted(path for path in paths if path.startswith(prefix))
    deep = {path for path in below if delimiter and delimiter in path[len(prefix) :]}
    assert listed == [path for path in below if path not in deep]
    assert prefixes == sorted({path[: path.index("/", len(prefix)) + 1] for path in deep})
