"""A kubeconfig as it can travel: with the certificates and tokens that it names as files inside.

Decides what is put inside, and which ways to log in cannot travel. Must not print anything of it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from amphitrite.schemas.errors import Error

#: A kubeconfig is some KiB, and so is what it names.
MAX_BYTES = 1 << 20
#: Field that names a file -> field that holds its content in base64.
_FILES = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
}


def complete(file: Path) -> str:
    """The kubeconfig as YAML text. Raises Error("LocalFileError") for what cannot be read, Error("InvalidDocument") for
    what is no kubeconfig or runs a program to log in."""
    try:
        config = yaml.safe_load(_read(file))
    except yaml.YAMLError as exc:
        raise Error("InvalidDocument", f"{file} is not YAML") from exc
    if not isinstance(config, Mapping) or not config.get("clusters"):
        raise Error("InvalidDocument", f"{file} is no kubeconfig: it has no clusters")
    whole = dict(config)
    whole["clusters"] = _each(config, "clusters", "cluster", lambda entry: _inline(entry, file.parent))
    whole["users"] = _each(config, "users", "user", lambda entry: _user(entry, file))
    return yaml.safe_dump(whole, sort_keys=False)


def _each(
    config: Mapping[str, Any], field: str, inner: str, change: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> list[Any]:
    return [
        {**entry, inner: change(entry.get(inner) or {})} if isinstance(entry, Mapping) else entry
        for entry in config.get(field) or ()
    ]


def _user(entry: Mapping[str, Any], file: Path) -> dict[str, Any]:
    for way in ("exec", "auth-provider"):
        if way in entry:
            raise Error(
                "InvalidDocument",
                f"{file} logs in by a program ({way}), which the control plane does not run",
                hint="use a kubeconfig with the token of a service account: kubectl create token",
            )
    whole = _inline(entry, file.parent)
    if "tokenFile" in whole:
        whole["token"] = _read(file.parent / whole.pop("tokenFile")).strip()
    return whole


def _inline(entry: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    whole = dict(entry)
    for field, data in _FILES.items():
        if field in whole:
            content = _bytes(directory / str(whole.pop(field)))
            whole.setdefault(data, base64.b64encode(content).decode())
    return whole


def _read(file: Path) -> str:
    try:
        return _bytes(file).decode("utf-8")
    except UnicodeDecodeError as exc:
        raise Error("LocalFileError", f"cannot read {file}: it is not UTF-8") from exc


def _bytes(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except OSError as exc:
        raise Error("LocalFileError", f"cannot read {file}: {exc.strerror}") from exc
    if len(content) > MAX_BYTES:
        raise Error("LimitExceeded", f"{file} has more than {MAX_BYTES} bytes", hint="give another file")
    return content
