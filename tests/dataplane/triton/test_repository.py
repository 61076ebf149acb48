"""Rows: the files of a repository, and what they say."""

from __future__ import annotations

import pytest

from amphitrite.dataplane.triton import repository_layout
from amphitrite.schemas.errors import Error

ENSEMBLE = 'name: "all"\nplatform: "ensemble"\nensemble_scheduling { step [] }\n'

GOOD = [
    (["model_1/1/model.onnx"], ("model_1",)),
    (["b/1/model.onnx", "a/12/model.py", "a/12/more/data.bin"], ("a", "b")),
    (["a/config.pbtxt", "a/1/weights.onnx"], ("a",)),
    (["a/1/model.savedmodel/saved_model.pb"], ("a",)),
    (["all/config.pbtxt", "a/1/model.onnx"], ("a", "all")),
    (["README.md", "LICENSE", "a/labels.txt", "a/1/model.onnx"], ("a",)),
    (["1/1/model.onnx"], ("1",)),
    (["a.pbtxt", "a/1/model.onnx"], ("a",)),
    (["a/0/model.onnx"], ("a",)),
]

BAD = [
    ([], "the repository has no model directory"),
    (["README.md"], "the repository has no model directory"),
    (["model.onnx"], "`model.onnx` is at the top of the repository, where Triton does not look for models"),
    (["a/model.onnx"], "`a/model.onnx` is not in a numeric version directory"),
    (["a/v1/model.onnx"], "`a/v1/model.onnx` is not in a numeric version directory"),
    (["a/01/model.onnx"], "`a/01/model.onnx` is not in a numeric version directory"),
    (["a/1/net.onnx"], "the model file must have the name model.onnx; found `a/1/net.onnx`"),
    (["a/1/net.pt"], "the model file must have the name model.pt; found `a/1/net.pt`"),
    (["a/1/model.pkl"], "Triton does not load a file such as `a/1/model.pkl`"),
    ([".git/HEAD", "a/1/model.onnx"], "the directory name `.git` is not valid for a model"),
    (["my model/1/model.onnx"], "the directory name `my model` is not valid for a model"),
    (["1/model.onnx"], "this is the directory of a single model, not a model repository"),
    (["1/model.onnx", "2/model.onnx"], "this is the directory of a single model, not a model repository"),
    (["config.pbtxt", "1/model.onnx"], "this is the directory of a single model, not a model repository"),
    (["a.pbtxt"], "`a.pbtxt` is at the top of the repository, where Triton does not look for models"),
]  # fmt: skip


@pytest.mark.parametrize(("paths", "names"), GOOD)
def test_a_repository_names_its_models(paths: list[str], names: tuple[str, ...]) -> None:
    assert repository_layout.check_layout(paths) == []
    assert repository_layout.model_names(paths) == names


@pytest.mark.parametrize(("paths", "message"), BAD)
def test_what_is_wrong_with_a_layout(paths: list[str], message: str) -> None:
    assert [v.message for v in repository_layout.check_layout(paths)] == [message]
    with pytest.raises(Error, match="not a Triton model repository") as caught:
        repository_layout.model_names(paths)
    assert caught.value.code == "UserError"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("paths", "folder", "found"),
    [
        (["a/1/model.onnx", "b/1/model.onnx"], "models", ("models", ("a", "b"))),
        (["1/model.onnx"], "model_1", ("", ("model_1",))),
        (["config.pbtxt", "1/model.py"], "m", ("", ("m",))),
        (["a/1/model.onnx"], "", ("", ("a",))),
    ],
)
def test_where_a_repository_begins(paths: list[str], folder: str, found: tuple[str, tuple[str, ...]]) -> None:
    assert repository_layout.locate(paths, folder) == found


@pytest.mark.parametrize(("paths", "folder"), [(["model.onnx"], ""), (["a/b/1/model.onnx"], "x"), ([], "x")])
def test_what_is_no_repository_anywhere(paths: list[str], folder: str) -> None:
    with pytest.raises(Error, match="not a Triton model repository"):
        repository_layout.locate(paths, folder)


def test_a_single_model_is_told_to_point_one_level_up() -> None:
    (violation,) = repository_layout.check_layout(["1/model.onnx", "config.pbtxt"])
    assert violation.hint == "set `path` to the parent directory"


def test_all_violations_are_reported_at_once() -> None:
    assert (
        len(repository_layout.check_layout(["a/model.onnx", "b/1/net.onnx", "c/1/model.onnx", "d e/1/model.onnx"])) == 3
    )


@pytest.mark.parametrize(
    ("paths", "config", "directories"),
    [
        (["all/config.pbtxt", "a/1/model.onnx"], ENSEMBLE, ("all/1",)),
        (["all/config.pbtxt"], "ensemble_scheduling: {\n}", ("all/1",)),
        (["all/config.pbtxt", "all/1/.keep"], ENSEMBLE, ()),
        (["all/config.pbtxt"], ENSEMBLE + "version_policy { specific { versions: [ 3, 2 ] } }", ("all/2", "all/3")),
        (["all/config.pbtxt"], '# platform: "ensemble"\nbackend: "onnxruntime"', ()),
        (["a/1/model.onnx"], "", ()),
    ],
)
def test_an_ensemble_gets_its_version_directory(paths: list[str], config: str, directories: tuple[str, ...]) -> None:
    assert repository_layout.empty_directories(paths, lambda path: config) == directories
