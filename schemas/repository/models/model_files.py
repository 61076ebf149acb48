"""The files of one model.

Decides how the file of a version is found: directly, or as ``model.onnx`` in a directory with the
name of the file. Must not know rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from posixpath import normpath

from amphitrite.schemas.repository.models import backends, layout


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """``sizes``: path relative to the model's directory -> bytes.

    ``empty``: directories without files.
    """

    name: str
    sizes: Mapping[str, int]
    empty: Sequence[str]

    @property
    def directories(self) -> list[str]:
        """The directories directly below the model's directory, in Triton's order."""
        return layout.subdirectories([*self.sizes, *(f"{path}/" for path in self.empty)])

    @property
    def first_directory(self) -> Mapping[str, bool] | None:
        """Entries of the first directory: name -> whether it is a directory; None without one."""
        directories = self.directories
        return backends.entries(iter(self.sizes), directories[0]) if directories else None

    def file_of(self, version: int, filename: str) -> str | None:
        """The path of a version's file in the repository; None if it does not exist."""
        for path in (f"{version}/{filename}", f"{version}/{filename}/model.onnx"):
            if path in self.sizes:
                return f"{self.name}/{path}"
        return None

    def files_of(self, version: int) -> list[str]:
        """The paths below the directory of a version, relative to it, sorted."""
        start = f"{version}/"
        return sorted(path.removeprefix(start) for path in self.sizes if path.startswith(start))

    def resolved(self, path: str) -> str | None:
        """A path in config.pbtxt as a path in the repository; None if it leaves the repository."""
        normalized = normpath(f"{self.name}/{path.lstrip('/')}")
        return None if normalized.startswith("..") else normalized

    def exists(self, path: str) -> bool:
        """Whether ``path`` is a file, or a directory with files."""
        return path in self.sizes or any(file.startswith(f"{path.rstrip('/')}/") for file in self.sizes)
