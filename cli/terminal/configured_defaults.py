"""What ``ml configure --defaults`` keeps: whose resources are meant where neither options nor environment say so.

Decides the file (``config`` in ML_HOME, in the form of az's own) and which names it may hold. Must not know commands.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from amphitrite.cli.terminal import home_directory
from amphitrite.schemas.errors import Error

#: Name -> the environment variable that wins over it; None: kept because Azure's scripts set it, and without effect.
NAMES: Mapping[str, str | None] = {
    "group": "ML_RESOURCE_GROUP",
    "workspace": "ML_WORKSPACE",
    "subscription": "ML_SUBSCRIPTION",
    "location": None,
}
_SECTION = "defaults"


def path(environ: Mapping[str, str] = os.environ) -> Path:
    """Where they are kept. Raises Error LocalFileError for a user without a home directory."""
    return home_directory.path(environ) / "config"


def read(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Name -> value; empty where nothing was configured. Raises Error LocalFileError."""
    file = path(environ)
    try:
        text = file.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
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
    """Keep ``changes``; an empty value forgets the name. Raises Error LocalFileError."""
    kept = {name: value for name, value in {**read(environ), **changes}.items() if value}
    lines = [f"[{_SECTION}]", *(f"{name} = {value}" for name, value in sorted(kept.items()))]
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
    hint = "remove the file; ml configure --defaults writes it anew"
    return Error("LocalFileError", f"cannot read {file}: {reason}", target=str(file), hint=hint)
