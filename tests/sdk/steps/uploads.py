"""Uploads and downloads that are large, repeated or broken off."""

from __future__ import annotations

import filecmp
import os
import subprocess
import sys
from pathlib import Path

from azure.ai.ml.entities import Model
from azure.core.exceptions import ResourceNotFoundError
from azure.identity import DefaultAzureCredential
from azure.storage.blob import ContainerClient

from .models import same_trees
from .step import DEADLINE_S, Here, newest_step, wait_until

#: Above it the SDK sends blocks of 4 MiB and a list of them; downloads come in ranges above 32 MiB.
IN_ONE_PIECE = 64 * 1024 * 1024

UPLOAD = """
import os, sys
from azure.ai.ml import MLClient
from azure.ai.ml.entities import Model
from azure.identity import DefaultAzureCredential

names = [os.environ[f"ML_{name}"] for name in ("SUBSCRIPTION", "RESOURCE_GROUP", "WORKSPACE")]
client = MLClient(DefaultAzureCredential(), *names, show_progress=False)
client.models.create_or_update(Model(name=sys.argv[1], version="1", path=sys.argv[2]))
"""


def blobs(here: Here) -> ContainerClient:
    """The workspace's container, as the SDK addresses it."""
    store = here.client.datastores.get("workspaceblobstore")
    url = f"https://{store.account_name}.blob.core.windows.net"
    return ContainerClient(url, store.container_name, credential=DefaultAzureCredential())


def directory(model: Model) -> str:
    """Where in the container a registered model's files are."""
    return str(model.path).partition("/paths/")[2]


@newest_step
def upload_in_blocks(here: Here) -> None:
    file = here.files / "large.bin"
    file.write_bytes(os.urandom(IN_ONE_PIECE + 4_000_001))
    made = here.client.models.create_or_update(Model(name=f"large-{here.tag}", path=str(file)))
    [blob] = blobs(here).list_blobs(name_starts_with=directory(made))
    assert blob.size == file.stat().st_size


@newest_step
def download_in_ranges(here: Here) -> None:
    target = here.files / "downloaded-large"
    here.client.models.download(f"large-{here.tag}", version="1", download_path=str(target))
    [file] = target.rglob("large.bin")
    assert filecmp.cmp(file, here.files / "large.bin", shallow=False)


@newest_step
def upload_repeated_sends_nothing(here: Here) -> None:
    first = here.client.models.get(f"large-{here.tag}", version="1")
    before = blobs(here).get_blob_client(directory(first)).get_blob_properties().last_modified
    again = here.client.models.create_or_update(Model(name=f"large-{here.tag}", path=str(here.files / "large.bin")))
    assert (again.version, again.path) == ("2", first.path)
    after = blobs(here).get_blob_client(directory(first)).get_blob_properties()
    assert after.last_modified == before
    assert after.metadata["upload_status"] == "completed"


@newest_step
def upload_from_two_places_at_once(here: Here) -> None:
    """Refused by 409, the SDK without its progress bar would wait for ever."""
    source = here.files / f"twice-{here.tag}"
    source.mkdir()
    for number in range(40):
        (source / f"part-{number:03}").write_bytes(os.urandom(100_000))
    names = [f"twice-{place}-{here.tag}" for place in ("here", "there")]
    children = [subprocess.Popen([sys.executable, "-c", UPLOAD, name, str(source)], stdout=2) for name in names]
    try:
        assert [child.wait(DEADLINE_S) for child in children] == [0, 0]
    finally:
        for child in children:
            child.kill()
    first, second = (here.client.models.get(name, version="1") for name in names)
    assert first.path == second.path


@newest_step
def upload_interrupted_and_begun_again(here: Here) -> None:
    """The process is killed between two files; whoever comes next sends all of them."""
    attempts = (broken_off(here, files) for files in (24, 72, 216))
    model = next(model for model in attempts if model is not None)
    source, target = Path(model.path), here.files / "downloaded-again"
    made = here.client.models.create_or_update(model)
    here.client.models.download(made.name, version="1", download_path=str(target))
    same_trees(source, target / made.name / source.name)


def broken_off(here: Here, files: int) -> Model | None:
    """A model with so many files whose upload was interrupted; None when it was too late for
    that."""
    source = here.files / f"interrupted-{files}-{here.tag}"
    source.mkdir()
    for number in range(files):
        (source / f"part-{number:03}").write_bytes(os.urandom(200_000))
    model = Model(name=source.name, version="1", path=str(source))
    # A process of its own: one that is killed may hold locks that it shares with whom it was forked
    # from.
    child = subprocess.Popen([sys.executable, "-c", UPLOAD, source.name, str(source)], stdout=2)
    container = blobs(here)

    def begun() -> bool:
        return any(f"/{source.name}/" in blob.name for blob in container.list_blobs("LocalUpload/"))

    wait_until(begun, "a first blob")
    child.kill()
    child.wait()
    try:
        here.client.models.get(source.name, version="1")
    except ResourceNotFoundError:
        return model
    return None
