"""What a kubeconfig may say that is handed to this server.

Decides that it only names an address and credentials: one that runs a program, or reads this server's files, would give
whoever may attach a compute the server itself. Must not connect anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amphitrite.schemas.errors import Violation

MAX_CHARACTERS = 256 * 1024
_PROGRAMS = ("exec", "auth-provider")
_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_AT = ("kubeconfig",)


def check(text: str) -> list[Violation]:
    """Violations of a kubeconfig; none of them quotes it."""
    import yaml

    if len(text) > MAX_CHARACTERS:
        return [Violation(_AT, f"has more than {MAX_CHARACTERS} characters", "kubectl config view --minify --flatten")]
    try:
        config = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return [Violation(_AT, "is not YAML", "give the text of the file that kubectl uses")]
    if not isinstance(config, Mapping) or not _entries(config, "clusters"):
        return [Violation(_AT, "has no clusters", "give the text of the file that kubectl uses")]
    contexts = [entry.get("name") for entry in config.get("contexts") or () if isinstance(entry, Mapping)]
    if config.get("current-context") not in contexts:
        return [Violation(_AT, "its current-context is none of its contexts", "kubectl config use-context NAME")]
    found = []
    inner = [*_entries(config, "clusters", "cluster"), *_entries(config, "users", "user")]
    for word in _PROGRAMS:
        if any(word in entry for entry in inner):
            hint = "use the token of a service account: kubectl create token"
            found.append(Violation(_AT, f"logs in by a program ({word}), which this server does not run", hint))
    for word in _FILES:
        if any(word in entry for entry in inner):
            message = f"names a file ({word}), which is not looked for on this server"
            found.append(Violation(_AT, message, "put it inside: kubectl config view --raw --minify --flatten"))
    return found


def _entries(config: Mapping[str, Any], field: str, inner: str | None = None) -> list[Mapping[str, Any]]:
    listed = config.get(field)
    entries = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    if inner is None:
        return entries
    return [one[inner] for one in entries if isinstance(one.get(inner), Mapping)]
