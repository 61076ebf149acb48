"""A self-contained kubeconfig: the certificates and tokens in files become part of its text.

Decides which files are embedded, and which login methods cannot be sent. Must not print any of the
content. Outside contract: kubeconfig v1 (Kubernetes, "Organizing Cluster Access Using kubeconfig
Files").
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from amphitrite.schemas import bounded_yaml
from amphitrite.schemas.errors import Error

#: A kubeconfig has a few KiB, and so have the files that it names.
MAX_BYTES = 1 << 20
#: Field with the name of a file -> field with the content in base64.
_FILES = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
}


def embed_files(file: Path) -> str:
    """The kubeconfig in ``file`` as YAML text, with all files embedded.

    Raises Error LocalFileError for a file that cannot be read, LimitExceeded above 1 MiB, and
    InvalidDocument if it is not a kubeconfig or runs a program to log in.
    """
    try:
        config = bounded_yaml.load(_read(file))
    except yaml.YAMLError as exc:
        raise Error("InvalidDocument", f"{file} {exc}") from exc
    if not isinstance(config, Mapping) or not config.get("clusters"):
        raise Error("InvalidDocument", f"{file} is not a kubeconfig: it has no clusters")
    result = dict(config)
    result["clusters"] = _each(config, "clusters", "cluster", lambda entry: _inline(entry, file.parent))
    result["users"] = _each(config, "users", "user", lambda entry: _user(entry, file))
    return yaml.dump(result, Dumper=_Dumper, sort_keys=False)


class _Dumper(yaml.SafeDumper):
    """Without anchors and aliases, for readers that do not know them."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


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
                f"{file} logs in with a program ({way}), which the control plane does not run",
                hint="use a kubeconfig with the token of a service account (`kubectl create token`)",
            )
    result = _inline(entry, file.parent)
    if "tokenFile" in result:
        result["token"] = _read(file.parent / result.pop("tokenFile")).strip()
    return result


def _inline(entry: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    result = dict(entry)
    for field, data in _FILES.items():
        if field in result:
            content = _bytes(directory / str(result.pop(field)))
            result.setdefault(data, base64.b64encode(content).decode())
    return result


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
        raise Error(
            "LimitExceeded", f"{file} is too large; allowed: {MAX_BYTES} bytes (1 MiB)", hint="use another file"
        )
    return content
