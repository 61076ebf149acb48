"""Versions and containers of models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amphitrite.controlplane.store.assets.model_store import Limits, ModelStore
from amphitrite.controlplane.store.state.database import SqlStore
from amphitrite.schemas.errors import Error

Register = Callable[..., Any]
LONG = "azureml://subscriptions/s/resourcegroups/rg/workspaces/ws/datastores/workspaceblobstore/paths/"
SHORT = "azureml://datastores/workspaceblobstore/paths/"
REPOSITORY = {"model_1/1/model.onnx": b"onnx", "model_1/config.pbtxt": b"max_batch_size: 8"}


def put(models: ModelStore, path: str, name: str = "m", version: str = "1", **document: Any) -> Any:
    values = {"name": name, "version": version, "type": "triton_model", "path": path, **document}
    return models.put_version(name, version, values, now=1.0)


def refusal(call: Callable[[], Any]) -> Error:
    with pytest.raises(Error) as caught:
        call()
    return caught.value


def test_a_version_has_what_was_uploaded(models: ModelStore, register: Register) -> None:
    version, created = register("Mine", "1", REPOSITORY, tags={"a": "b"})
    assert created and (version.name, version.version, version.size) == ("Mine", "1", 21)
    assert (version.model_names, version.document["tags"]) == (("model_1",), {"a": "b"})
    assert models.get_version("MINE", "1") == version
    assert models.reference("mine", "1") == {
        "name": "Mine", "version": "1", "digest": version.digest, "model_names": ["model_1"], "sequences": False,
        "number_ids": False,
    }  # fmt: skip


ID_CONTROL = b"""sequence_batching { control_input { name: "ID"
  control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_%s } } }"""


@pytest.mark.parametrize(
    ("config", "want"),
    [
        (b"sequence_batching { direct {} }", (True, False)),
        (ID_CONTROL % b"UINT64", (True, True)),
        (ID_CONTROL % b"INT32", (True, True)),
        (ID_CONTROL % b"STRING", (True, False)),
        (b"max_batch_size: 8 # sequence_batching {}", (False, False)),
        (b'parameters { key: "sequence_batching" value { string_value: "x" } }', (False, False)),
        (b"not a configuration {", (False, False)),
    ],
)
def test_sequences_are_known_by_the_configuration(
    models: ModelStore, register: Register, config: bytes, want: tuple[bool, bool]
) -> None:
    register("mine", "1", {"a/1/model.py": b"", "b/1/model.onnx": b"onnx", "a/config.pbtxt": config})
    found = models.reference("mine", "1")
    assert (found["sequences"], found["number_ids"]) == want


@pytest.mark.parametrize("address", [LONG, SHORT, LONG.replace("resourcegroups", "resourceGroups")])
@pytest.mark.parametrize("end", ["", "/"])
def test_addresses(models: ModelStore, upload: Any, address: str, end: str) -> None:
    upload("LocalUpload/aa/my models/m1/1/model.onnx", b"x")
    upload("LocalUpload/aa/my models2/m2/1/model.onnx", b"y")
    assert put(models, f"{address}LocalUpload/aa/my models{end}")[0].model_names == ("m1",)
    assert put(models, f"{address}LocalUpload/aa/my%20models{end}", version="2")[0].model_names == ("m1",)


@pytest.mark.parametrize(
    ("path", "code", "says"),
    [
        (SHORT + "LocalUpload/none", "UserError", "there are no files below LocalUpload/none"),
        (SHORT + "LocalUpload/a", "UserError", "there are no files below"),
        ("azureml://datastores/other/paths/x", "UserError", "datastore 'other' does not exist"),
        ("https://example.org/model", "Unsupported", "https://example.org/model"),
        ("azureml://jobs/j/outputs/artifacts/paths/model", "Unsupported", "azureml://jobs"),
        ("runs:/1/model", "Unsupported", "runs:/1/model"),
        ("./models", "Unsupported", "./models"),
        ("", "UserError", "the model has no path"),
        (SHORT + "LocalUpload/aa/models/model_1/1", "UserError", "model.onnx"),
        (SHORT + "LocalUpload/up", "UserError", "'..'"),
        (SHORT + "LocalUpload/twice", "UserError", "empty part"),
        (SHORT + "LocalUpload/both", "UserError", "is below another file"),
        (SHORT + "LocalUpload/long", "UserError", "longer than 255 bytes"),
    ],
)
def test_what_cannot_be_registered(models: ModelStore, upload: Any, path: str, code: str, says: str) -> None:
    for name in ("aa/models/model_1/1/model.onnx", "up/m/../../x", "twice/m//x", "both/m/1", "both/m/1/x"):
        upload(f"LocalUpload/{name}", b"x")
    upload(f"LocalUpload/long/m/{'é' * 128}", b"x")
    error = refusal(lambda: put(models, path))
    assert error.code == code and says in error.message
    assert models.list_models("All") == []


@pytest.mark.parametrize("address", [SHORT + "LocalUpload/aa/my model", SHORT + "LocalUpload/aa/my%20model"])
def test_the_name_of_a_single_models_directory_is_checked(models: ModelStore, upload: Any, address: str) -> None:
    upload("LocalUpload/aa/my model/1/model.onnx", b"x")
    assert "the directory name `my model` is not valid for a model" in refusal(lambda: put(models, address)).message


def test_the_directory_above_a_single_model_becomes_the_repository(models: ModelStore, register: Register) -> None:
    """As Azure ML takes it, whose public notebook registers ``models/model_1``."""
    files = {path.removeprefix("model_1/"): data for path, data in REPOSITORY.items()}
    single, _ = register("single", "1", files, prefix="LocalUpload/bb/model_1")
    assert (single.model_names, models.folder(single)) == (("model_1",), "")
    assert [file.path for file in models.layout(single.digest).files] == sorted(REPOSITORY)
    # The same content as a whole repository keeps the name of its own directory.
    whole, _ = register("whole", "1", REPOSITORY)
    assert (whole.digest, models.folder(whole)) == (single.digest, "models")
    # A repository may have the name of its only model.
    alike, _ = register("alike", "1", REPOSITORY, prefix="LocalUpload/cc/model_1")
    assert (alike.digest, models.folder(alike)) == (single.digest, "model_1")
    # As a custom_model the files are taken as they are.
    custom, _ = register("custom", "1", files, prefix="LocalUpload/bb/model_1", type="custom_model")
    assert (custom.model_names, models.folder(custom)) == ((), "model_1")
    assert register("single", "1", files, prefix="LocalUpload/dd/model_1")[1] is False


def test_a_path_is_needed(models: ModelStore) -> None:
    error = refusal(lambda: models.put_version("m", "1", {"name": "m"}, now=1.0))
    assert (error.code, error.target) == ("UserError", "path")


def test_too_many_files(store: SqlStore, models: ModelStore, upload: Any, tmp_path: Path) -> None:
    few = ModelStore(store.database, models.blobs.content, tmp_path / "models", Limits(files_per_model=2))
    for number in range(3):
        upload(f"LocalUpload/aa/m/{number}", b"x")
    error = refusal(lambda: put(few, SHORT + "LocalUpload/aa"))
    assert error.code == "LimitExceeded" and "more than 2 files below LocalUpload/aa (files_per_model)" in error.message


def test_a_custom_model_may_be_one_file(models: ModelStore, upload: Any) -> None:
    upload("LocalUpload/aa/model.pkl", b"x")
    version, _ = put(models, SHORT + "LocalUpload/aa/model.pkl", type="custom_model")
    assert (version.model_names, version.size) == ((), 1)


def test_the_same_content_elsewhere_changes_only_the_description(models: ModelStore, register: Register) -> None:
    first, _ = register("m", "1", REPOSITORY)
    again, created = register("m", "1", REPOSITORY, prefix="LocalUpload/other/models", description="x")
    assert not created and again.digest == first.digest
    assert again.document == {**first.document, "description": "x"}


@pytest.mark.parametrize(
    ("files", "fields"),
    [
        ({**REPOSITORY, "model_1/1/model.onnx": b"other"}, {}),
        ({**REPOSITORY, "model_2/1/model.onnx": b"onnx"}, {}),
        (REPOSITORY, {"type": "custom_model"}),
    ],
)
def test_other_content_is_another_version(register: Register, files: Any, fields: Any) -> None:
    register("m", "1", REPOSITORY)
    error = refusal(lambda: register("m", "1", files, prefix="LocalUpload/bb/models", **fields))
    assert (error.code, error.message) == ("UserError", "Asset paths cannot be updated.")


def test_registered_content_cannot_be_overwritten(models: ModelStore, register: Register, upload: Any) -> None:
    register("m", "1", REPOSITORY)
    path = "LocalUpload/aa/models/model_1/1/model.onnx"
    assert refusal(lambda: upload(path, b"other", overwrite=True)).code == "Conflict"
    assert upload(path, REPOSITORY["model_1/1/model.onnx"], overwrite=True).path == path


def test_a_file_added_later_does_not_change_a_version(register: Register, models: ModelStore, upload: Any) -> None:
    version, _ = register("m", "1", REPOSITORY)
    upload("LocalUpload/aa/models/model_2/1/model.onnx", b"x")
    archived = models.put_version("m", "1", version.document, is_archived=True, now=2.0)[0]
    assert archived.digest == version.digest
    assert [p.name for p in models.repository(version.digest).iterdir()] == ["model_1"]


def test_lists_follow_the_order_of_creation(models: ModelStore, register: Register, clock: Any) -> None:
    for version in ("2", "10", "1.0"):
        register("m", version, REPOSITORY)
    register("m", "2", REPOSITORY, is_archived=True)
    register("hash", "1", REPOSITORY, is_anonymous=True)

    def versions(*arguments: Any) -> list[str]:
        return [v.version for v in models.list_versions("M", *arguments)]

    assert versions() == ["1.0", "10"]
    assert versions("ArchivedOnly") == ["2"]
    assert versions("All", "createdtime asc") == ["2", "10", "1.0"]
    assert models.latest("m").version == "1.0"
    container = models.get_container("m")
    assert (container.latest_version, container.next_version) == ("1.0", "11")


def test_anonymous_models_are_found_but_not_listed(models: ModelStore, register: Register) -> None:
    register("hash", "1", REPOSITORY, is_anonymous=True)
    assert models.list_models("All") == [] and models.list_versions("hash", "All") == []
    assert models.get_version("hash", "1").is_anonymous
    assert refusal(lambda: models.latest("hash")).code == "ResourceNotFound"


def test_archiving_a_model_hides_it_and_its_versions(models: ModelStore, register: Register) -> None:
    register("b", "1", REPOSITORY)
    register("A", "1", REPOSITORY)
    assert [c.name for c in models.list_models()] == ["A", "b"]
    assert models.set_container_archived("a", True, tags={"t": "1"}, now=2.0).tags == {"t": "1"}
    assert [c.name for c in models.list_models()] == ["b"]
    assert [c.name for c in models.list_models("ArchivedOnly")] == ["A"]
    assert models.list_versions("a") == [] and len(models.list_versions("a", "ArchivedOnly")) == 1
    restored = models.set_container_archived("a", False, now=3.0)
    assert (restored.tags, restored.is_archived, len(models.list_versions("a"))) == ({"t": "1"}, False, 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda models: models.get_version("m", "2"),
        lambda models: models.get_container("none"),
        lambda models: models.latest("none"),
        lambda models: models.reference("none", "1"),
        lambda models: models.set_container_archived("none", True, now=1.0),
        lambda models: models.repository("0" * 64),
    ],
)
def test_what_is_not_there_is_not_found(models: ModelStore, register: Register, call: Any) -> None:
    register("m", "1", REPOSITORY)
    assert refusal(lambda: call(models)).code == "ResourceNotFound"
    assert models.list_versions("none") == []
