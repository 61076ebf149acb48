"""The defaults that ``ml configure --defaults`` stores: resource group, workspace and subscription.

They apply where neither an option nor an environment variable is set. Decides the file (``config``
in ML_HOME, in the format of az's own) and which names it may hold. Must not know commands.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from amphitrite.cli.terminal import home_directory
from amphitrite.schemas.errors import Error

#: Name -> the environment variable that takes precedence over it. None: stored because Azure's
#: scripts set it, but without effect.
NAMES: Mapping[str, str | None] = {
    "group": "ML_RESOURCE_GROUP",
    "workspace": "ML_WORKSPACE",
    "subscription": "ML_SUBSCRIPTION",
    "location": None,
}
_SECTION = "defaults"


def path(environ: Mapping[str, str] = os.environ) -> Path:
    """The file. Raises Error LocalFileError for a user without a home directory."""
    return home_directory.path(environ) / "config"


def read(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Name -> value; empty if nothing is configured. Raises Error LocalFileError."""
    file = path(environ)
    try:
        text = file.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except PermissionError as exc:
        raise home_directory.permission_denied(file) from exc
    except (OSError, UnicodeDecodeError) as exc:
        raise _unreadable(file, exc) from exc
    import configparser

    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error as exc:
        raise _unreadable(file, exc) from exc
    return dict(parser[_SECTION]) if parser.has_section(_SECTION) else {}


def change(changes: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> None:
    """Store ``changes``; an empty value removes the name. Raises Error LocalFileError."""
    defaults = {name: value for name, value in {**read(environ), **changes}.items() if value}
    lines = [f"[{_SECTION}]", *(f"{name} = {value}" for name, value in sorted(defaults.items()))]
    file = path(environ)
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part.write_text("\n".join(lines) + "\n", encoding="utf-8")
        part.replace(file)
    except OSError as exc:
        raise Error("LocalFileError", f"cannot write {file}: {exc.strerror}", target=str(file)) from exc


def _unreadable(file: Path, exc: Exception) -> Error:
    reason = " ".join(str(exc).split())
    hint = "remove the file, then run `ml configure --defaults` again"
    return Error("LocalFileError", f"cannot read {file}: {reason}", target=str(file), hint=hint)
