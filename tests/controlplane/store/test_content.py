"""Which place a URL stands for, and that control planes can share one."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from amphitrite.controlplane.store.assets.model_store import ModelStore
from amphitrite.controlplane.store.content.content_store import Content, open_content
from amphitrite.controlplane.store.content.directory_content import ContentDirectory
from amphitrite.controlplane.store.sql.tables import blobs
from amphitrite.controlplane.store.state.database import open_store
from amphitrite.schemas.errors import Error

from ... import s3

DAY = 24 * 3600.0
Clock = Callable[[], float]


@pytest.fixture(params=["directory", "s3"])
def content(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Content:
    if request.param == "s3":
        return s3.bucket(monkeypatch, clock).content(tmp_path / "models")
    return open_content(f"file://{tmp_path}/models", tmp_path / "models", clock)


@pytest.mark.parametrize("host", ["", "localhost"])
def test_a_directory(tmp_path: Path, clock: Clock, host: str) -> None:
    opened = open_content(f"file://{host}{tmp_path}/a%20b", tmp_path, clock)
    assert isinstance(opened, ContentDirectory)
    assert opened.place == str(tmp_path / "a b")


@pytest.mark.parametrize(
    "url",
    [
        "", "/models", "models", "file://", "file:models", "file://host/models", "s3://", "s3:///prefix",
        "s3://key:secret@bucket/prefix", "s3://bucket/prefix?key=secret", "https://bucket", "file:///a#b",
    ],
)  # fmt: skip
def test_what_is_no_place(tmp_path: Path, clock: Clock, url: str) -> None:
    with pytest.raises(Error) as caught:
        open_content(url, tmp_path, clock)
    assert caught.value.code == "BadArgument" and "s3://bucket/prefix" in str(caught.value.hint)
    assert "secret" not in repr(caught.value)


def test_s3_needs_its_library(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(Error) as caught:
        open_content("s3://bucket", tmp_path, clock)
    hint = "in a checkout of amphitrite: pip install '.[cluster]'"
    assert (caught.value.code, caught.value.hint) == ("Unsupported", hint)


@pytest.mark.parametrize("digest", ["", "0" * 63, "A" * 64, "../" * 21 + "x", "0" * 64 + "\n"])
def test_only_digests_name_content(content: Content, digest: str) -> None:
    with pytest.raises(ValueError, match="not a SHA-256"):
        content.size(digest)


def test_what_is_not_there(content: Content, tmp_path: Path) -> None:
    digest = "0" * 64
    assert content.size(digest) is None
    assert not content.discard_older(digest, 9e9)
    for call in (
        lambda: content.read(digest, 0, 1),
        lambda: content.read_block("none"),
        lambda: content.lay_out(digest, tmp_path / "target"),
    ):
        with pytest.raises(LookupError):
            call()
    content.drop_blocks(["none"])
    assert list(content.digests()) == []


def test_taking_content_in_again_makes_it_young(content: Content, clock: Any) -> None:
    def take_in() -> str:
        with content.begin(100) as upload:
            upload.write(b"x")
            return upload.finish()[0]

    digest, first = take_in(), clock()
    clock.pass_s(DAY)
    assert take_in() == digest
    assert not content.discard_older(digest, clock())
    assert b"".join(content.read(digest, 0, 1)) == b"x"
    clock.pass_s(1)
    assert clock() > first and content.discard_older(digest, clock())


def test_a_reader_that_leaves_lets_go(content: Content) -> None:
    with content.begin(10**7) as upload:
        upload.write(b"x" * 3_000_000)
        digest, size = upload.finish()
    chunks = content.read(digest, 0, size)
    assert len(next(chunks)) > 0
    chunks.close()
    content.read(digest, 0, size).close()


def test_two_control_planes_share_a_place(content: Content, tmp_path: Path, clock: Any) -> None:
    """Uploads, in pieces or in blocks, of few different contents, while the other collects as if
    all were old: no path is ever without its content, and nothing fails but what says that it must
    be uploaded again."""
    stores = [open_store(tmp_path / "store.db") for _ in range(2)]
    planes = [ModelStore(s.database, content, tmp_path / f"home{n}", clock=clock) for n, s in enumerate(stores)]
    done = threading.Event()
    refused = []

    def upload(worker: int) -> int:
        choose, stored = random.Random(worker), 0
        blobs_of = planes[worker % 2].blobs
        for turn in range(15):
            data = choose.choice([b"1", b"2", b"3"])
            path = f"LocalUpload/{worker}/{turn % 2}"
            try:
                with blobs_of.begin() as body:
                    body.write(data)
                    if choose.random() < 0.3:
                        blobs_of.put_block(path, "1", body)
                        blobs_of.commit_blocks(path, ["1"])
                    else:
                        blobs_of.put(path, *body.finish(), overwrite=True)
                stored += 1
            except Error as error:
                # CollectionResult between two steps: a day has passed for it.
                refused.append(error)
        return stored

    def collect(plane: ModelStore) -> None:
        while not done.is_set():
            plane.collect_garbage(clock() + 2 * DAY, frozenset())

    def look() -> int:
        looks = 0
        while not done.is_set() or not looks:
            with stores[0].database.write() as connection:
                for digest in connection.execute(select(blobs.c.digest)).scalars():
                    assert content.size(digest) == 1
            looks += 1
        return looks

    with ThreadPoolExecutor(7) as pool:
        others = [pool.submit(collect, plane) for plane in planes] + [pool.submit(look)]
        stored = sum(pool.map(upload, range(4)))
        done.set()
        for other in others:
            other.result()
    assert stored and {error.code for error in refused} <= {"RuntimeUnavailable", "InvalidBlockList", "Conflict"}
    for store in stores:
        store.close()
