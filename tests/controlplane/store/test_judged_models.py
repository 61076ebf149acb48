"""Models are judged before they are registered, over the stored files and no more of them than is
needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amphitrite.controlplane.services import model_validation
from amphitrite.controlplane.store.assets.model_store import ModelStore
from amphitrite.controlplane.store.content.manifest_files import StoredFiles
from amphitrite.controlplane.store.content.manifests import File
from amphitrite.controlplane.store.state.database import SqlStore
from amphitrite.schemas.errors import Error
from amphitrite.schemas.repository import Server

from ...tiny_onnx import tiny

GOOD = {"m/1/model.onnx": tiny("x")}
BAD = {"m/1/model.onnx": tiny("x"), "m/config.pbtxt": b"max_batch_sizes: 8\n"}


@pytest.fixture
def models(store: SqlStore, content: Any, tmp_path: Path, clock: Any) -> ModelStore:
    def check(files: StoredFiles) -> None:
        model_validation.check(files, Server(gpus=0))

    return ModelStore(store.database, content, tmp_path / "models", clock=clock, check=check)


def test_a_good_model_is_registered_and_a_bad_one_is_not(models: ModelStore, register: Callable[..., Any]) -> None:
    assert register("good", "1", GOOD)[1]
    with pytest.raises(Error) as caught:
        register("bad", "1", BAD, prefix="LocalUpload/bb/models")
    assert (caught.value.code, caught.value.target, caught.value.hint) == (
        "UserError",
        "path",
        'did you mean "max_batch_size"?',
    )
    (violation,) = caught.value.violations
    assert violation.path == ("path",)
    assert violation.message.startswith("m/config.pbtxt:1:1: max_batch_sizes: unknown field `max_batch_sizes`")
    with pytest.raises(Error, match="bad"):
        models.get_version("bad", "1")


def test_only_triton_models_are_judged(register: Callable[..., Any]) -> None:
    assert register("other", "1", BAD, type="custom_model")[1]


def test_what_is_registered_is_not_judged_again(
    store: SqlStore, models: ModelStore, tmp_path: Path, register: Callable[..., Any]
) -> None:
    register("good", "1", GOOD)
    kept = models.get_version("good", "1").document

    def refuse(files: StoredFiles) -> None:
        raise AssertionError("judged again")

    later = ModelStore(store.database, models.blobs.content, tmp_path / "models", check=refuse)
    assert later.put_version("good", "1", {**kept, "tags": {"a": "b"}}, now=2.0)[1] is False


def test_a_stored_file_reads_like_any_other(models: ModelStore, upload: Callable[..., Any]) -> None:
    data = bytes(range(256)) * 3_000
    blob = upload("a/b", data)
    stored = StoredFiles(models.blobs.content, [File("b", blob.digest, len(data), "a/b")])
    with stored.open("b") as stream:
        assert stream.read(3) == data[:3]
        assert stream.seek(-2, 2) == len(data) - 2
        assert stream.read(10) == data[-2:]
        stream.seek(262_000)
        assert stream.read(1_000) == data[262_000:263_000]
        stream.seek(0)
        assert stream.read() == data


@pytest.mark.parametrize(("on_clusters", "open_backends"), [(True, True), (False, False)])
def test_clusters_have_what_they_have(on_clusters: bool, open_backends: bool) -> None:
    """The wheel's Triton is installed where these tests run."""
    assert (model_validation.server({}, on_clusters).backends is None) is open_backends
