"""The files of one model, by its versions.

Decides how a version's file is found: itself, or the file of its name in a directory of its name. Must not know rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from posixpath import normpath

from amphitrite.schemas.repository.models import backends, layout


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """``sizes``: path relative to the model's directory -> bytes; ``empty``: directories without files."""

    name: str
    sizes: Mapping[str, int]
    empty: Sequence[str]

    @property
    def directories(self) -> list[str]:
        """Directly in the model's, in Triton's order."""
        return layout.subdirectories([*self.sizes, *(f"{path}/" for path in self.empty)])

    @property
    def first_directory(self) -> Mapping[str, bool] | None:
        """What lies in the first of them: name -> whether it is a directory; None without one."""
        found = self.directories
        return backends.entries(iter(self.sizes), found[0]) if found else None

    def file_of(self, version: int, filename: str) -> str | None:
        """The path, from the repository on, of a version's file, or of the file of its name in a directory of its
        name."""
        for path in (f"{version}/{filename}", f"{version}/{filename}/model.onnx"):
            if path in self.sizes:
                return f"{self.name}/{path}"
        return None

    def files_of(self, version: int) -> list[str]:
        start = f"{version}/"
        return sorted(path.removeprefix(start) for path in self.sizes if path.startswith(start))

    def resolved(self, path: str) -> str | None:
        """A path that config.pbtxt gives, from the repository on; None when it leads out of that."""
        found = normpath(f"{self.name}/{path.lstrip('/')}")
        return None if found.startswith("..") else found

    def holds(self, path: str) -> bool:
        """Whether there is such a file, or a directory with files."""
        return path in self.sizes or any(file.startswith(f"{path.rstrip('/')}/") for file in self.sizes)
