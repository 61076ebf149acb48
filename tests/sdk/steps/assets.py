"""Workspace, datastores, environments and code."""

from __future__ import annotations

import uuid
from importlib.metadata import version

from azure.ai.ml.entities._assets import Code

from .step import Here, refused, step


@step
def h19_the_release_that_was_asked_for(here: Here) -> None:
    """Old releases need older libraries to be imported at all: see ``requirements/``."""
    assert version("azure-ai-ml") == here.release


@step
def workspace_get(here: Here) -> None:
    found = here.client.workspaces.get("local")
    assert (found.name, found.location) == ("local", "local")
    assert found.id == here.workspace
    assert found.container_registry.split("/")[-1] == "amphitrite"


@step
def datastore_get(here: Here) -> None:
    found = here.client.datastores.get("workspaceblobstore")
    assert (found.name, found.container_name) == ("workspaceblobstore", "azureml-blobstore")
    with refused("nothing"):
        here.client.datastores.get("nothing")


@step
def datastore_list_and_default(here: Here) -> None:
    assert [store.name for store in here.client.datastores.list()] == ["workspaceblobstore"]
    assert here.client.datastores.get_default().name == "workspaceblobstore"


def snapshot(here: Here) -> Code:
    """Scripts of this run alone, as the SDK registers them for a deployment."""
    directory = here.files / "scripts"
    directory.mkdir(exist_ok=True)
    (directory / "train.py").write_text(f"print({here.tag})\n")
    return here.client._code.create_or_update(Code(name=str(uuid.uuid4()), version="1", path=str(directory)))


@step
def code_create_and_get(here: Here) -> None:
    made = snapshot(here)
    found = here.client._code.get(made.name, made.version)
    assert (found.id, found.path) == (made.id, made.path)


@step
def code_of_the_same_content_is_found_again(here: Here) -> None:
    assert snapshot(here).id == snapshot(here).id


@step
def code_download(here: Here) -> None:
    made, target = snapshot(here), here.files / "downloaded-code"
    here.client._code.download(made.name, made.version, download_path=str(target))
    [file] = target.rglob("train.py")
    assert file.read_text() == f"print({here.tag})\n"
