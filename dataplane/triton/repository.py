"""The layout of a Triton model repository, judged from the list of its files alone.

Decides which models a repository holds, what is wrong with its layout, and which empty directories Triton needs but
a manifest of files cannot carry. Must not know where the files lie, how they were uploaded or who serves them.

The layout is Triton's (its documentation, "Model Repository")::

    <path>/<model>/config.pbtxt        optional
    <path>/<model>/<version>/model.onnx

A path is relative to the repository's root, with ``/`` between its parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath

from amphitrite.schemas.errors import Error, Violation

EXPECTED = "expected <path>/<model name>/<version number>/model.onnx, for example model_1/1/model.onnx"

#: What Triton looks for in a version directory when no config.pbtxt names another file.
_DEFAULT_FILES = frozenset(
    {
        "model.onnx", "model.py", "model.plan", "model.pt", "model.savedmodel", "model.graphdef",
        "model.xml", "model.dali", "model.json",
    }
)  # fmt: skip
_MODEL_SUFFIXES = frozenset({".onnx", ".py", ".plan", ".pt", ".pth", ".graphdef", ".pb", ".pbtxt", ".xml"})
#: Triton ignores a version directory whose name has a leading zero.
_VERSION = re.compile(r"[1-9][0-9]*")
#: A model's name is a part of a URL, so it holds only what needs no escaping there.
_MODEL_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._~-]*")
_COMMENT = re.compile(r"#[^\n]*")
_ENSEMBLE = re.compile(r"""\bplatform\s*:\s*["']ensemble["']|\bensemble_scheduling\s*:?\s*\{""")


def model_names(paths: Sequence[str]) -> tuple[str, ...]:
    """The models of a repository: its top-level directories, sorted.

    Raises Error("UserError") with every violation of :func:`check_layout` when the layout is not Triton's.
    """
    violations = check_layout(paths)
    if violations:
        raise Error(
            "UserError",
            "not a Triton model repository: " + "; ".join(v.message for v in violations),
            hint=next((v.hint for v in violations if v.hint), EXPECTED),
            violations=violations,
        )
    return tuple(_models(paths))


def check_layout(paths: Sequence[str]) -> list[Violation]:
    """Everything wrong with the layout, as violations of the field ``path``."""
    top = sorted(path for path in paths if "/" not in path)
    models = _models(paths)
    if _is_single_model(top, models):
        hint = "point `path` to the parent directory"
        return [_violation("this is the directory of a single model, not of a repository", hint)]
    violations = [
        _violation(f"`{path}` lies directly at the top, where Triton does not look for models")
        for path in top
        if PurePosixPath(path).suffix in _MODEL_SUFFIXES
    ]
    for name, files in models.items():
        violations += _check_model(name, files)
    if not models and not violations:
        violations.append(_violation("it holds no model directory"))
    return violations


def empty_directories(paths: Sequence[str], read_text: Callable[[str], str]) -> tuple[str, ...]:
    """Directories without files that Triton insists on: the version directory of each ensemble that has none.

    ``read_text`` gives the text of one of ``paths``.
    """
    return tuple(
        f"{name}/1"
        for name, files in _models(paths).items()
        if ("config.pbtxt",) in files and not _versions(files) and is_ensemble(read_text(f"{name}/config.pbtxt"))
    )


def is_ensemble(config: str) -> bool:
    """Whether the text of a config.pbtxt describes an ensemble, which has no model file of its own."""
    return bool(_ENSEMBLE.search(_COMMENT.sub("", config)))


def _models(paths: Iterable[str]) -> dict[str, list[tuple[str, ...]]]:
    """Top-level directory -> the parts of each path below it; sorted by name."""
    models: dict[str, list[tuple[str, ...]]] = {}
    for path in sorted(paths):
        first, *rest = path.split("/")
        if rest:
            models.setdefault(first, []).append(tuple(rest))
    return dict(sorted(models.items()))


def _versions(files: Iterable[tuple[str, ...]]) -> dict[str, list[tuple[str, ...]]]:
    """Version directory -> the parts of each path below it."""
    versions: dict[str, list[tuple[str, ...]]] = {}
    for first, *rest in files:
        if rest and _VERSION.fullmatch(first):
            versions.setdefault(first, []).append(tuple(rest))
    return versions


def _is_single_model(top: Sequence[str], models: dict[str, list[tuple[str, ...]]]) -> bool:
    """``1/model.onnx``, perhaps ``config.pbtxt``, at the top. A model called ``1`` has versions below itself."""
    versions = [name for name in models if _VERSION.fullmatch(name) and not _versions(models[name])]
    return bool(versions) and ("config.pbtxt" in top or len(versions) == len(models))


def _check_model(name: str, files: Sequence[tuple[str, ...]]) -> list[Violation]:
    if not _MODEL_NAME.fullmatch(name):
        hint = "rename or remove it: a model's name has letters, digits, `_`, `-`, `.` and `~`"
        return [_violation(f"directory `{name}` cannot be the name of a model", hint)]
    if ("config.pbtxt",) in files:
        return []  # It may name other files or versions, or an ensemble: Triton's own answer is the exact one.
    versions = _versions(files)
    if not versions:
        return [_violation(f"`{name}/{'/'.join(files[0])}` is not below a numeric version directory")]
    if not any(file[0] in _DEFAULT_FILES for below in versions.values() for file in below):
        version, below = next(iter(versions.items()))
        hint = f"rename it to model.onnx, or add {name}/config.pbtxt with `default_model_filename`"
        return [_violation(f"`{name}/{version}/{'/'.join(below[0])}` is not called model.onnx", hint)]
    return []


def _violation(message: str, hint: str = EXPECTED) -> Violation:
    return Violation(("path",), message, hint)
