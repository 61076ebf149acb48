"""A model repository for an instance without a GPU, beside the one in the store.

Decides how it is laid out: links to the store's files, and files of its own for the configurations
that differ. Must not know what they say or who starts Triton.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from amphitrite.dataplane.triton.cpu_configuration import CpuConfiguration, on_cpu
from amphitrite.schemas.repository.files.file_listing import TEXT_BYTES_MAX
from amphitrite.schemas.repository.models.layout import CONFIG


def configurations(repository: Path) -> tuple[CpuConfiguration, ...]:
    """Those that an instance without a GPU needs. Raises OSError."""
    files = [path for path in repository.glob(f"*/{CONFIG}") if path.stat().st_size <= TEXT_BYTES_MAX]
    return on_cpu(
        [path.relative_to(repository).as_posix() for path in files],
        lambda path: (repository / path).read_bytes().decode(errors="surrogateescape"),
    )


def lay_out(repository: Path, target: Path, replaced: Iterable[CpuConfiguration]) -> Path:
    """``target``, a repository with the content of ``repository`` and these configurations. What
    was there is removed. Raises OSError."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(mode=0o700, parents=True)
    own = {one.path: one.text for one in replaced}
    models = {path.partition("/")[0] for path in own}
    for entry in repository.iterdir():
        if entry.name not in models:
            (target / entry.name).symlink_to(entry)
            continue
        (target / entry.name).mkdir()
        for file in entry.iterdir():
            path = f"{entry.name}/{file.name}"
            if path in own:
                (target / path).write_bytes(own[path].encode(errors="surrogateescape"))
            else:
                (target / path).symlink_to(file)
    return target
