"""The directories of a repository: models, versions, and the versions that Triton would load.

Decides from paths which directories are models and versions, and reports problems of the layout.
Must not know the content of files. Repeats Triton's ``ModelRepositoryManager::Poll`` and
``VersionsToLoad``. It also refuses names of models that are not valid in a URL.

The layout, as in Triton's document "Model Repository"::

    <path>/<model>/config.pbtxt        optional
    <path>/<model>/<version>/model.onnx
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from amphitrite.schemas.repository.config.syntax_tree import Message
from amphitrite.schemas.repository.files.findings import Finding

CONFIG = "config.pbtxt"
EXPECTED = "use the layout <path>/<model name>/<version number>/model.onnx, for example model_1/1/model.onnx"

#: Directories of a model that are not versions.
_RESERVED = frozenset({"warmup", "initial_state", "configs"})
_MODEL_SUFFIXES = frozenset({".onnx", ".py", ".plan", ".pt", ".pth", ".graphdef", ".pb", ".pbtxt", ".xml"})
#: Files that Triton looks for in a version directory, unless config.pbtxt names another one.
_DEFAULT_FILES = frozenset(
    {
        "model.onnx", "model.py", "model.plan", "model.pt", "model.savedmodel", "model.graphdef",
        "model.xml", "model.dali", "model.json",
    }
)  # fmt: skip
#: Triton ignores a version directory whose name has a leading zero.
_VERSION = re.compile(r"0|[1-9][0-9]*")
#: The texts that C++'s ``stoll`` reads as a number.
_NUMBER = re.compile(r"[ \t\n\v\f\r]*[+-]?[0-9]+")
#: The name of a model is part of a URL: only characters that need no escaping.
_MODEL_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._~-]*")
_VERSION_MAX = 2**63 - 1


def models(paths: Iterable[str]) -> dict[str, list[str]]:
    """Top-level directory -> the paths below it, relative to it. Both are sorted."""
    result: dict[str, list[str]] = {}
    for path in sorted(paths):
        first, slash, rest = path.partition("/")
        if slash:
            result.setdefault(first, []).append(rest)
    return dict(sorted(result.items()))


def check(paths: Sequence[str]) -> list[Finding]:
    """The problems of the layout that do not depend on config.pbtxt."""
    top = sorted(path for path in paths if "/" not in path)
    by_model = models(paths)
    if is_single_model(paths):
        message = "this is the directory of a single model, not a model repository"
        return [Finding("", message, "single-model", fix="set `path` to the parent directory")]
    findings = [
        Finding(
            path,
            f"`{path}` is at the top of the repository, where Triton does not look for models",
            "stray-file",
            "warning" if by_model else "error",
            fix=EXPECTED,
        )
        for path in top
        if PurePosixPath(path).suffix in _MODEL_SUFFIXES
    ]
    for name, files in by_model.items():
        findings += _check_model(name, files)
    if not by_model and not findings:
        findings.append(Finding("", "the repository has no model directory", "no-model", fix=EXPECTED))
    return findings


def is_single_model(paths: Sequence[str]) -> bool:
    """Whether ``1/model.onnx`` (and perhaps ``config.pbtxt``) is at the top: the paths are those of
    one model, and the directory above it is its repository.

    A model with the name ``1`` has version directories below it.
    """
    top, by_model = {path for path in paths if "/" not in path}, models(paths)
    versions = [name for name in by_model if _VERSION.fullmatch(name) and not _versions_of(by_model[name])]
    return bool(versions) and (CONFIG in top or len(versions) == len(by_model))


def single_model_note(name: str) -> str:
    """What users are told of the directory ``name`` of a single model."""
    return f"{name} is the directory of a single model; the directory above it is taken as the model repository"


def subdirectories(paths: Iterable[str]) -> list[str]:
    """The directories directly below a model's directory, in Triton's order.

    ``paths``: relative to the model's directory. One that ends with a slash is a directory without
    files.
    """
    names = {path.partition("/")[0] for path in paths if "/" in path}
    return sorted(names, key=str.encode)


def version_directories(directories: Iterable[str]) -> dict[int, str]:
    """Version -> the directory that Triton takes for it.

    Triton looks for the files in the directory ``str(version)``, which may be another one.
    """
    versions: dict[int, str] = {}
    for directory in directories:
        if directory in _RESERVED or (len(directory) > 1 and directory.startswith("0")):
            continue
        if match := _NUMBER.match(directory):
            number = int(match[0])
            if number not in versions or directory == str(number):
                versions[number] = directory
    return versions


def beyond_range(version: int) -> bool:
    """Whether this version is too large for Triton, which ends with an exception."""
    return not -_VERSION_MAX - 1 <= version <= _VERSION_MAX


def versions_to_load(policy: Message | None, existing: Iterable[int]) -> tuple[int, ...]:
    """The versions that a ``version_policy`` selects, sorted; without a policy the newest."""
    present = sorted(existing)
    if policy is None:
        return tuple(present[-1:])
    if specific := policy.child("specific"):
        return tuple(sorted(set(specific.numbers("versions")) & set(present)))
    if latest := policy.child("latest"):
        count = latest.number("num_versions")
        return tuple(present[-count:]) if count else ()
    return tuple(present)


def lost_versions(config: Message, paths: Sequence[str]) -> tuple[str, ...]:
    """The version directories that an ensemble lost in an upload, because they were empty."""
    if config.text("platform") != "ensemble" and not config.has("ensemble_scheduling"):
        return ()
    if version_directories(subdirectories(paths)):
        return ()
    policy = config.child("version_policy")
    specific = policy.child("specific") if policy else None
    versions = specific.numbers("versions") if specific else ()
    return tuple(str(version) for version in sorted(set(versions)) if 0 <= version <= _VERSION_MAX) or ("1",)


def _check_model(name: str, files: Sequence[str]) -> list[Finding]:
    if not _MODEL_NAME.fullmatch(name):
        fix = "rename or remove it; a model's name may have letters, digits, `_`, `-`, `.` and `~`"
        return [Finding(name, f"the directory name `{name}` is not valid for a model", "model-name", fix=fix)]
    if CONFIG in files or "." in name:
        return []  # The configuration, or the suffix of the name, decides the files.
    versions = _versions_of(files)
    if not versions:
        message = f"`{name}/{files[0]}` is not in a numeric version directory"
        return [Finding(name, message, "no-version", fix=EXPECTED)]
    if not any(file.split("/")[0] in _DEFAULT_FILES for below in versions.values() for file in below):
        version, below = next(iter(versions.items()))
        return [_unknown_file(name, f"{name}/{version}/{below[0]}")]
    return []


def _unknown_file(name: str, path: str) -> Finding:
    """``path``: a file of the model ``name`` that Triton does not look for."""
    suffix = PurePosixPath(path).suffix
    expected = next((file for file in sorted(_DEFAULT_FILES) if suffix and file.endswith(suffix)), None)
    configured = f"add {name}/{CONFIG} with `default_model_filename` and `backend`"
    if expected is not None:
        message = f"the model file must have the name {expected}; found `{path}`"
        return Finding(path, message, "no-model-file", fix=f"rename it to {expected}, or {configured}")
    message = f"Triton does not load a file such as `{path}`"
    fix = f"export the model to ONNX, as model.onnx; or load this file in a model.py beside it; or {configured}"
    return Finding(path, message, "no-model-file", fix=fix)


def _versions_of(files: Iterable[str]) -> dict[str, list[str]]:
    """Version directory -> the paths below it."""
    versions: dict[str, list[str]] = {}
    for file in files:
        first, slash, rest = file.partition("/")
        if slash and rest and _VERSION.fullmatch(first):
            versions.setdefault(first, []).append(rest)
    return versions
