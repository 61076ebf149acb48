"""The parts of the fetcher by themselves: what it believes, and what leaves the cache."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amphitrite.controlplane.store.content import manifests
from amphitrite.dataplane.fetch import manifest
from amphitrite.dataplane.fetch.cache import KEEP_S, Cache, size_of
from amphitrite.dataplane.fetch.fetch_failure import DiskFull, FetchFailure, disk_failures

A, B, C, NEW = "a" * 64, "b" * 64, "c" * 64, "d" * 64
DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)


def listed(*entries: dict[str, Any], digest: str | None = None, **more: Any) -> manifest.Manifest:
    files = tuple(manifest.File(e.get("path", ""), e.get("digest", ""), 0, "") for e in entries)
    body = json.dumps({"files": entries, "empty_directories": [], **more}).encode()
    return manifest.read(body, digest or manifest.manifest_digest(files), "https://cp:8443")


def entry(path: str = "m/1/model.onnx", **changes: Any) -> dict[str, Any]:
    return {"path": path, "digest": A, "size": 3, "url": "/fetch/v1/content/x?expires=1", **changes}


@given(files=st.lists(st.tuples(st.text(min_size=1), DIGESTS), max_size=5))
def test_its_digest_of_a_list_is_the_model_stores(files: list[tuple[str, str]]) -> None:
    theirs = manifests.manifest_digest([manifests.File(path, digest, 0, "") for path, digest in files])
    assert manifest.manifest_digest(tuple(manifest.File(path, digest, 0, "") for path, digest in files)) == theirs


def test_addresses_are_the_control_planes_or_whole() -> None:
    s3 = "https://s3.example/bucket/key?X-Amz-Signature=1"
    found = listed(entry("a"), entry("b", url=s3), in_use=[B])
    assert [file.url for file in found.files] == ["https://cp:8443/fetch/v1/content/x?expires=1", s3]
    assert (found.size, found.in_use) == (6, {B, found.digest})
    assert "Signature" not in repr(found) and "expires" not in repr(found)


@pytest.mark.parametrize(
    "bad",
    [
        entry("../x"), entry("/etc/passwd"), entry("a//b"), entry("a/./b"), entry(""), entry("a\0b"),
        entry(digest="x"), entry(size=-1), entry(size="many"), entry(url="file:///etc/passwd"), {"path": "a"},
    ],
)  # fmt: skip
def test_what_a_list_may_not_hold(bad: dict[str, Any]) -> None:
    with pytest.raises(FetchFailure, match="cannot be read"):
        listed(bad)


@pytest.mark.parametrize("directory", ["..", "a/../../b", "/a"])
def test_directories_stay_inside_too(directory: str) -> None:
    with pytest.raises(FetchFailure, match="cannot be read"):
        listed(entry(), empty_directories=[directory])


def test_the_list_of_another_model_is_not_believed() -> None:
    with pytest.raises(FetchFailure, match="files of another model"):
        listed(entry(), digest=B)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"<html>", b'{"files": 1, "empty_directories": []}'])
def test_no_list_at_all(body: bytes) -> None:
    with pytest.raises(FetchFailure, match="cannot be read"):
        manifest.read(body, A, "https://cp")


def cached(root: Path, size: int = 100, **asked_days_ago: float) -> Cache:
    """A cache with models of ``size`` bytes; keyword: name -> days since somebody asked."""
    for name, days in asked_days_ago.items():
        digest = name * 64
        (root / digest / "m" / "1").mkdir(parents=True)
        (root / digest / "m" / "1" / "model.onnx").write_bytes(b"x" * size)
        (root / f"{digest}.lock").touch()
        asked = time.time() - days * 86400
        os.utime(root / f"{digest}.lock", (asked, asked))
    return Cache(root, max_bytes=3 * size)


def models(root: Path) -> set[str]:
    return {path.name[0] for path in root.iterdir() if path.is_dir()}


@pytest.mark.parametrize(
    ("size", "in_use", "left"),
    [
        (50, (), {"b", "c"}),
        (100, (), {"b", "c"}),
        (150, (), {"c"}),
        (100, (A,), {"a", "c"}),
        (999, (), {"c"}),
        (150, (A, B), {"a", "b", "c"}),
    ],
)
def test_the_longest_unused_models_make_room(tmp_path: Path, size: int, in_use: Iterable[str], left: set[str]) -> None:
    cache = cached(tmp_path, a=9, b=3, c=0.5)
    cache.free_space(NEW, size, frozenset(in_use))
    assert models(tmp_path) == left
    assert list(tmp_path.glob(".*")) == []


def test_a_model_that_somebody_holds_stays(tmp_path: Path) -> None:
    cache = cached(tmp_path, a=9, b=3, c=2)
    with cache.locked(A):
        asked = time.time() - 9 * 86400
        os.utime(tmp_path / f"{A}.lock", (asked, asked))
        cache.free_space(NEW, 100, frozenset())
    assert models(tmp_path) == {"a", "c"}


def test_asking_makes_a_model_young(tmp_path: Path) -> None:
    cache = cached(tmp_path, a=9, b=3, c=2)
    with cache.locked(A):
        pass
    cache.free_space(NEW, 100, frozenset())
    assert models(tmp_path) == {"a", "c"}


def test_without_a_bound_only_the_disk_counts(tmp_path: Path) -> None:
    cached(tmp_path, a=9, b=0.5)
    cache = Cache(tmp_path)
    cache.free_space(NEW, 10**6, frozenset())
    assert models(tmp_path) == {"a", "b"}
    with pytest.raises(DiskFull, match=f"has {10**18} bytes, the cache"):
        cache.free_space(NEW, 10**18, frozenset())
    assert models(tmp_path) == {"b"}


def test_leftovers_of_the_dead_go_after_a_day(tmp_path: Path) -> None:
    cache = cached(tmp_path, a=9)
    for digest, days in ((B, 2.0), (C, 0.5)):
        with cache.locked(digest):
            tree, _ = cache.staging(digest)
            (tree / "half").write_bytes(b"x")
        asked = time.time() - days * 86400
        os.utime(tmp_path / f"{digest}.lock", (asked, asked))
    cache.remove_abandoned(time.time())
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [f".{C}.partial", A]
    assert KEEP_S == 86400


def test_a_model_appears_as_a_whole(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    with cache.locked(A):
        tree, parts = cache.staging(A)
        (tree / "m").mkdir()
        (tree / "m" / "file").write_bytes(b"12345")
        (parts / "0").write_bytes(b"left")
        cache.publish(A)
    assert size_of(cache.model(A)) == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == [A, f"{A}.lock"]


@pytest.mark.parametrize(
    ("number", "says", "kind"),
    [
        (errno.ENOSPC, "no space left", DiskFull),
        (errno.EDQUOT, "no space left", DiskFull),
        (errno.EACCES, "cannot be used: Permission denied", FetchFailure),
        (errno.EIO, "cannot be used: Input/output error", FetchFailure),
    ],
)
def test_a_disks_errors_are_told(tmp_path: Path, number: int, says: str, kind: type[FetchFailure]) -> None:
    with pytest.raises(kind, match=says) as caught, disk_failures(tmp_path):
        raise OSError(number, os.strerror(number))
    assert caught.value.hint
