"""The layout of a Triton model repository, judged from the list of its files alone.

Decides how the faults of a layout become an Error, and which empty directories Triton needs that a
manifest of files cannot hold. Must not know where the files are, how they were uploaded or who
serves them. The rules are those of ``schemas.repository.models.layout``. A path is relative to the
repository's root, with ``/`` between its parts. Source: Triton's document "Model Repository".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from amphitrite.schemas.errors import Error, Violation
from amphitrite.schemas.repository import errors
from amphitrite.schemas.repository.config.text_format import parse
from amphitrite.schemas.repository.models import layout


def model_names(paths: Sequence[str]) -> tuple[str, ...]:
    """The models of a repository: its top-level directories, sorted.

    Raises Error("UserError") with every violation of :func:`check_layout` when the layout is not
    Triton's.
    """
    violations = check_layout(paths)
    if violations:
        raise Error(
            "UserError",
            "not a Triton model repository: " + "; ".join(v.message for v in violations),
            hint=next((v.hint for v in violations if v.hint), layout.EXPECTED),
            violations=violations,
        )
    return tuple(layout.models(paths))


def locate(paths: Sequence[str], folder: str) -> tuple[str, tuple[str, ...]]:
    """Where a repository begins among files in a directory ``folder``, and the models in it.

    The repository is ``folder``, or what contains it, where ``folder`` is the directory of one
    model. The first value is empty for the latter, and for files without a ``folder``. Raises
    Error("UserError") when neither is a repository.
    """
    violations = check_layout(paths)
    if violations and folder and not check_layout(above := [f"{folder}/{path}" for path in paths]):
        return "", model_names(above)
    return folder, model_names(paths)


def check_layout(paths: Sequence[str]) -> list[Violation]:
    """All faults of the layout, as violations of the field ``path``."""
    return [Violation(("path",), finding.message, finding.fix) for finding in errors(layout.check(paths))]


def empty_directories(paths: Sequence[str], read_text: Callable[[str], str]) -> tuple[str, ...]:
    """Directories without files that Triton needs: the version directories of each ensemble that
    has none. An upload loses them. ``read_text`` returns the text of one of ``paths``."""
    directories = []
    for name, files in layout.models(paths).items():
        if layout.CONFIG in files:
            path = f"{name}/{layout.CONFIG}"
            config, _ = parse(read_text(path), path)
            directories += [f"{name}/{version}" for version in layout.lost_versions(config, files)]
    return tuple(directories)
