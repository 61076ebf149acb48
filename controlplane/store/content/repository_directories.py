"""Model repositories: a manifest as the directory that Triton reads.

Decides that a repository appears complete or not at all, and is named by the manifest's digest.
Must not know model names, where content is stored or who serves it.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from amphitrite.controlplane.store.content.content_store import Content, damaged
from amphitrite.controlplane.store.content.manifests import File
from amphitrite.controlplane.store.content.spool import Scratch, disk_errors, sync_directory
from amphitrite.dataplane.triton.repository_layout import empty_directories
from amphitrite.schemas.errors import Error
from amphitrite.schemas.repository.config.syntax_tree import Message
from amphitrite.schemas.repository.config.text_format import parse
from amphitrite.schemas.repository.files.file_listing import TEXT_BYTES_MAX
from amphitrite.schemas.repository.models.layout import CONFIG

log = logging.getLogger(__name__)


def materialise(content: Content, scratch: Scratch, digest: str, manifest: Sequence[File]) -> Path:
    """The directory for this manifest, created if it does not exist or is damaged. Thread-safe.

    Raises Error DamagedContent (content is missing or not what its digest says) or
    RuntimeUnavailable (full disk, or the content store does not answer).
    """
    final = scratch.repositories / digest
    if final.is_dir():
        with disk_errors(scratch.root):
            broken = damaged_file(content, final, manifest)
        if broken is None:
            return final
        log.warning("%s is damaged; the directory is made again", final / broken)
    building, former = scratch.temporary_name(), scratch.temporary_name()
    try:
        with disk_errors(scratch.root):
            _build(content, building, manifest)
            if final.is_dir() and damaged_file(content, final, manifest) is not None:
                # What has opened the old files keeps them.
                with contextlib.suppress(FileNotFoundError):
                    final.rename(former)
            try:
                building.rename(final)
            except OSError as exc:
                if exc.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                # Another thread was faster; its directory is identical.
            sync_directory(scratch.repositories)
    finally:
        shutil.rmtree(building, ignore_errors=True)
        shutil.rmtree(former, ignore_errors=True)
    return final


def damaged_file(content: Content, root: Path, manifest: Sequence[File]) -> str | None:
    """The first file of a laid-out manifest that is missing or damaged; None if all are good.
    Raises OSError."""
    for file in manifest:
        if not content.verified.path_holds(root / file.path, file.digest):
            return file.path
    return None


def missing_directories(content: Content, manifest: Sequence[File]) -> tuple[str, ...]:
    """The empty directories that a repository needs. Uploads contain files only, so a directory
    that Triton expects is missing if it has no files. Raises as :func:`materialise`."""
    files = {file.path: file for file in manifest}

    def read_text(path: str) -> str:
        file = files[path]
        require(content, file)
        return b"".join(content.read(file.digest, 0, min(file.size, TEXT_BYTES_MAX))).decode("utf-8", errors="replace")

    return empty_directories([file.path for file in manifest], read_text)


def sequence_facts(content: Content, manifest: Sequence[File]) -> tuple[bool, bool]:
    """Whether a model keeps state between the requests of a sequence, and whether one of these asks
    for the id of the sequence as a number. Raises as :func:`require`.

    A configuration that cannot be parsed counts as no; registration checks that it can.
    """
    keeps, numbers = False, False
    for file in manifest:
        if PurePosixPath(file.path).name == CONFIG and file.size <= TEXT_BYTES_MAX:
            require(content, file)
            text = b"".join(content.read(file.digest, 0, file.size)).decode("utf-8", errors="replace")
            batcher = parse(text, file.path)[0].child("sequence_batching")
            keeps = keeps or batcher is not None
            numbers = numbers or (batcher is not None and _takes_numbers(batcher))
    return keeps, numbers


def _takes_numbers(batcher: Message) -> bool:
    controls = [control for entry in batcher.children("control_input") for control in entry.children("control")]
    return any(
        control.enum_name("kind") == "CONTROL_SEQUENCE_CORRID" and control.enum_name("data_type") != "TYPE_STRING"
        for control in controls
    )


def require(content: Content, file: File) -> None:
    """Raises Error DamagedContent if content is missing or has another size."""
    size = content.size(file.digest)
    if size is None:
        message = f"the content of {file.path} is missing"
    elif size != file.size:
        message = f"{file.path} has {size} bytes in the store instead of {file.size}"
    else:
        return
    hint = damaged(file.digest, file.path).hint
    raise Error("DamagedContent", message, target=file.digest, hint=hint)


def _build(content: Content, root: Path, manifest: Sequence[File]) -> None:
    root.mkdir(mode=0o755)
    for file in manifest:
        target = root / file.path
        target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        require(content, file)
        content.lay_out(file.digest, target)
    for path in missing_directories(content, manifest):
        (root / path).mkdir(mode=0o755, parents=True, exist_ok=True)
    for directory, _, _ in os.walk(root):
        sync_directory(Path(directory))
