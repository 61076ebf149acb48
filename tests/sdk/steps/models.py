"""Models: create, find, list, archive, download."""

from __future__ import annotations

import filecmp
from pathlib import Path
from typing import Any

from azure.ai.ml.constants import ListViewType
from azure.ai.ml.entities import Model
from azure.core.exceptions import ResourceNotFoundError

from .step import Here, refused, step


def name(here: Here) -> str:
    return f"tiny-{here.tag}"


def create(here: Here, path: str = "five", **more: Any) -> Model:
    wanted: dict[str, Any] = {"name": name(here), "type": "triton_model", "path": str(here.files / path), **more}
    return here.client.models.create_or_update(Model(**wanted))


def versions(here: Here, view: str = ListViewType.ACTIVE_ONLY) -> list[str]:
    return sorted(model.version for model in here.client.models.list(name=name(here), list_view_type=view))


@step
def model_create_from_a_directory(here: Here) -> None:
    made = create(here, version="1", description="adds a number", tags={"a": "1"}, properties={"p": "q"})
    assert (made.name, made.version, made.type) == (name(here), "1", "triton_model")
    assert (made.description, made.tags["a"], made.properties["p"]) == ("adds a number", "1", "q")
    assert made.path.startswith("azureml://subscriptions/") and made.path.endswith("/five"), made.path
    assert made.creation_context.created_at is not None


@step
def model_create_from_a_file(here: Here) -> None:
    file = here.files / "weights.bin"
    made = here.client.models.create_or_update(Model(name=f"file-{here.tag}", path=str(file), type="custom_model"))
    assert (made.version, made.type) == ("1", "custom_model")
    assert made.path.endswith("/weights.bin")


@step
def model_create_again_is_the_same(here: Here) -> None:
    before = here.client.models.get(name(here), version="1")
    again = create(here, version="1", description="adds a number", tags={"a": "1"}, properties={"p": "q"})
    assert (again.id, again.path, again.tags) == (before.id, before.path, before.tags)
    assert again.creation_context.created_at == before.creation_context.created_at


@step
def h04_a_put_replaces_all_that_is_the_users(here: Here) -> None:
    before = here.client.models.get(name(here), version="1")
    again = create(here, version="1")
    assert (again.tags, again.description) == ({}, None)
    assert (again.path, again.creation_context.created_at) == (before.path, before.creation_context.created_at)


@step
def h13_without_a_version_it_is_the_next(here: Here) -> None:
    assert create(here, "six").version == "2"
    assert create(here, version="9").version == "9"
    assert create(here, version="candidate").version == "candidate"
    assert create(here).version == "10"


@step
def model_get_by_version(here: Here) -> None:
    found = here.client.models.get(name(here), version="2")
    assert (found.name, found.version, found.type) == (name(here), "2", "triton_model")
    assert found.id == f"{here.workspace}/models/{name(here)}/versions/2"


@step
def h14_latest_is_the_newest_created(here: Here) -> None:
    assert here.client.models.get(name(here), label="latest").version == "10"
    create(here, version="3")
    assert here.client.models.get(name(here), label="latest").version == "3"


@step
def model_that_is_not_there(here: Here) -> None:
    for version in ("77", "none"):
        try:
            here.client.models.get(name(here), version=version)
        except ResourceNotFoundError as error:
            assert version in str(error), error
        else:
            raise AssertionError(version)
    with refused("does not exist"):
        here.client.models.get(f"nothing-{here.tag}", label="latest")


@step
def model_list_versions_with_every_view(here: Here) -> None:
    everything = ["1", "10", "2", "3", "9", "candidate"]
    here.client.models.archive(name(here), version="9")
    assert versions(here) == [version for version in everything if version != "9"]
    assert versions(here, ListViewType.ARCHIVED_ONLY) == ["9"]
    assert versions(here, ListViewType.ALL) == everything


@step
def model_archive_and_restore_a_version(here: Here) -> None:
    here.client.models.archive(name(here), version="2")
    assert "2" not in versions(here)
    here.client.models.restore(name(here), version="2")
    here.client.models.restore(name(here), version="9")
    assert {"2", "9"} <= set(versions(here))


@step
def model_archive_and_restore_by_label(here: Here) -> None:
    here.client.models.archive(name(here), label="latest")
    assert versions(here, ListViewType.ARCHIVED_ONLY) == ["3"]
    here.client.models.restore(name(here), version="3")
    assert "3" in versions(here)


@step
def model_archive_and_restore_all_of_it(here: Here) -> None:
    def listed(view: str) -> bool:
        return name(here) in {model.name for model in here.client.models.list(list_view_type=view)}

    here.client.models.archive(name(here))
    views = (ListViewType.ACTIVE_ONLY, ListViewType.ARCHIVED_ONLY, ListViewType.ALL)
    assert [listed(view) for view in views] == [False, True, True]
    here.client.models.restore(name(here))
    assert [listed(view) for view in views] == [True, False, True]


@step
def model_list_of_containers(here: Here) -> None:
    """The latest version is the one created last, whatever its number."""
    found = {model.name: model for model in here.client.models.list()}[name(here)]
    assert (found.latest_version, found.version, found.path) == ("3", None, None)


@step
def model_download_is_byte_for_byte(here: Here) -> None:
    target = here.files / "downloaded"
    here.client.models.download(name(here), version="2", download_path=str(target))
    same_trees(here.files / "six", target / name(here) / "six")
    here.client.models.download(f"file-{here.tag}", version="1", download_path=str(target))
    [file] = (target / f"file-{here.tag}").rglob("weights.bin")
    assert filecmp.cmp(file, here.files / "weights.bin", shallow=False)


@step
def h11_other_files_under_a_version_are_refused(here: Here) -> None:
    with refused("path"):
        create(here, "six", version="1")


@step
def h11_the_same_files_by_another_path_are_the_same_version(here: Here) -> None:
    """Releases name content by different hashes: each of them registers the same files under the
    same version."""
    with here.alone("crossing"):
        made = create(here, str(here.shared / "crossing"), name="crossing", version="1")
    assert (made.name, made.version) == ("crossing", "1")


@step
def h12_anonymous_models_are_not_listed(here: Here) -> None:
    uri = here.client.models.get(name(here), version="2").path
    body = {"properties": {"modelType": "triton_model", "modelUri": uri, "isAnonymous": True}}
    made = here.rest(f"models/c0ffee{here.tag}/versions/1", "PUT", body)
    assert made["properties"]["isAnonymous"] is True
    assert f"c0ffee{here.tag}" not in {model.name for model in here.client.models.list()}
    assert here.client.models.get(f"c0ffee{here.tag}", version="1").path == uri


@step
def h17_pages_are_followed(here: Here) -> None:
    """The server answers at most 100 items at once."""
    found = [model.version for model in here.client.models.list(name="many")]
    assert sorted(map(int, found)) == list(range(1, 131))


def same_trees(wanted: Path, found: Path) -> None:
    """Both have the same files, byte for byte."""
    files = sorted(path.relative_to(wanted) for path in wanted.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(found) for path in found.rglob("*") if path.is_file())
    assert [file for file in files if not filecmp.cmp(wanted / file, found / file, shallow=False)] == []
