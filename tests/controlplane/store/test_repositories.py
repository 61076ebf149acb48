"""Model repositories made of the store's content."""

from __future__ import annotations

import errno
import shutil
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import pytest

from amphitrite.controlplane.store.assets.model_store import ModelStore
from amphitrite.controlplane.store.content.directory_content import ContentDirectory
from amphitrite.controlplane.store.content.manifests import File
from amphitrite.controlplane.store.content.repository_directories import materialise
from amphitrite.controlplane.store.content.spool import Scratch
from amphitrite.schemas.errors import Error

Register = Callable[..., Any]
ENSEMBLE = b'platform: "ensemble"\nensemble_scheduling { step [ { model_name: "model_1" } ] }\n'
FILES = {
    "model_1/1/model.onnx": b"one",
    "model_1/2/model.onnx": b"two",
    "model_1/2/weights.bin": b"one",
    "all/config.pbtxt": ENSEMBLE,
}


def laid_out(root: Path) -> dict[str, bytes | None]:
    """Relative path -> content; None for an empty directory."""
    found: dict[str, bytes | None] = {}
    for path in root.rglob("*"):
        if path.is_file():
            found[str(path.relative_to(root))] = path.read_bytes()
        elif not any(path.iterdir()):
            found[str(path.relative_to(root))] = None
    return found


def test_it_holds_the_files_and_the_empty_directory_of_an_ensemble(
    models: ModelStore, register: Register, tmp_path: Path
) -> None:
    version, _ = register("m", "1", FILES)
    assert version.model_names == ("all", "model_1")
    root = models.repository(version.digest)
    assert root == tmp_path / "models" / "repositories" / version.digest
    assert laid_out(root) == {**FILES, "all/1": None}
    files = [path for path in root.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o444}
    assert all(path.stat().st_nlink > 1 for path in files) == isinstance(models.blobs.content, ContentDirectory)
    assert models.repository(version.digest) == root


@pytest.mark.parametrize("content", ["directory"], indirect=True)
def test_without_hard_links_it_holds_copies(models: ModelStore, upload: Any, tmp_path: Path, clock: Any) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError(errno.EXDEV, "another file system")

    uploaded = {path: upload(path, data) for path, data in FILES.items()}
    manifest = [File(path, blob.digest, blob.size, path) for path, blob in uploaded.items()]
    unlinkable = ContentDirectory(tmp_path / "models", clock, link=refuse)
    root = materialise(unlinkable, Scratch(tmp_path / "elsewhere"), "0" * 64, manifest)
    assert laid_out(root) == {**FILES, "all/1": None}
    assert {stat.S_IMODE(p.stat().st_mode) for p in root.rglob("*") if p.is_file()} == {0o444}


def test_many_threads_make_one(models: ModelStore, register: Register, tmp_path: Path) -> None:
    version, _ = register("m", "1", FILES)
    with ThreadPoolExecutor(8) as pool:
        roots = set(pool.map(models.repository, [version.digest] * 16))
    (root,) = roots
    assert laid_out(root) == {**FILES, "all/1": None}
    assert list((tmp_path / "models" / "temporary").iterdir()) == []


@pytest.mark.parametrize(
    ("damage", "content"),
    [(damage, place) for damage in ("lost", "shorter", "changed") for place in ("directory", "s3")],
    indirect=["content"],
)
def test_damaged_content_is_not_served(
    models: ModelStore, register: Register, upload: Any, damage: str, tmp_path: Path
) -> None:
    version, _ = register("m", "1", FILES)
    digest = upload("x", b"two").digest
    models.blobs.content.discard_older(digest, 9e9)
    if isinstance(models.blobs.content, ContentDirectory):
        if damage != "lost":
            models.blobs.content.path(digest).write_bytes(b"tw" if damage == "shorter" else b"owt")
    elif damage != "lost":
        bucket, key = models.blobs.content.place.split("/")[2], f"of/us/sha256/{digest[:2]}/{digest}"
        boto3.client("s3").put_object(Bucket=bucket, Key=key, Body=b"tw" if damage == "shorter" else b"owt")
    with pytest.raises(Error) as caught:
        models.repository(version.digest)
    assert caught.value.code == "DamagedContent"
    assert ("is damaged" if damage == "changed" else "model_1/2/model.onnx") in caught.value.message
    assert list((tmp_path / "models" / "repositories").iterdir()) == []
    assert list((tmp_path / "models" / "temporary").iterdir()) == []


def test_it_is_made_again_when_it_was_removed(models: ModelStore, register: Register) -> None:
    version, _ = register("m", "1", FILES)
    shutil.rmtree(models.repository(version.digest))
    assert laid_out(models.repository(version.digest)) == {**FILES, "all/1": None}
