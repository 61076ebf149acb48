"""Model repositories: a manifest laid out as the directory that Triton reads.

Decides that a repository is made of hard links to the store's content, appears complete or not at all, and is named by
the manifest's digest. Must not know models' names or who serves them.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from amphitrite.controlplane.store.content import ContentFiles, disk_errors, sync_directory
from amphitrite.controlplane.store.manifests import File
from amphitrite.dataplane.triton.repository import empty_directories
from amphitrite.schemas.errors import Error

#: What link(2) answers where hard links are not possible: another file system, none at all, too many of them.
_NO_LINK = (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK)


def materialise(
    files: ContentFiles, digest: str, manifest: Sequence[File], link: Callable[[Path, Path], None] = os.link
) -> Path:
    """The directory for this manifest, made if it is not there; from any number of threads. Where ``link`` cannot,
    files are copied.

    Raises Error InternalServerError (content is lost or has another size), RuntimeUnavailable (full disk).
    """
    final = files.repositories / digest
    if final.is_dir():
        return final
    building = files.temporary_name()
    try:
        with disk_errors(files.root):
            _build(files, building, manifest, link)
            try:
                building.rename(final)
            except OSError as exc:
                if exc.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                # Another thread was faster; what it made is the same.
            sync_directory(files.repositories)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return final


def _build(files: ContentFiles, root: Path, manifest: Sequence[File], link: Callable[[Path, Path], None]) -> None:
    root.mkdir(mode=0o755)
    for file in manifest:
        target = root / file.path
        target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        _place(files.path(file.digest), target, file, link)

    def read_text(path: str) -> str:
        return (root / path).read_text(encoding="utf-8", errors="replace")

    # Uploads carry files only, so a directory that Triton wants to see is missing when nothing lies in it.
    for path in empty_directories([file.path for file in manifest], read_text):
        (root / path).mkdir(mode=0o755, parents=True, exist_ok=True)
    for directory, _, _ in os.walk(root):
        sync_directory(Path(directory))


def _place(content: Path, target: Path, file: File, link: Callable[[Path, Path], None]) -> None:
    try:
        size = content.stat().st_size
    except FileNotFoundError as exc:
        raise Error("InternalServerError", f"the content of {file.path} is lost", target=file.digest) from exc
    if size != file.size:
        message = f"{file.path} has {size} bytes in the store instead of {file.size}"
        raise Error("InternalServerError", message, target=file.digest, hint="register the model again")
    try:
        link(content, target)
    except OSError as exc:
        if exc.errno not in _NO_LINK:
            raise
        shutil.copyfile(content, target)
        target.chmod(0o444)
