"""What a user's kubeconfig may contain.

Decides that it contains only an address and credentials. A kubeconfig that runs a program or reads
files would give its author control of this server. Must not connect anywhere. Source:
https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amphitrite.schemas.errors import Violation

MAX_CHARACTERS = 256 * 1024
_PROGRAMS = ("exec", "auth-provider")
_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_AT = ("kubeconfig",)
_SHORTEN = "shorten it: kubectl config view --raw --minify --flatten"
_GIVE = "give the text of the file that kubectl uses"


def check(text: str) -> list[Violation]:
    """Violations of a kubeconfig. No violation quotes it, because it holds secrets."""
    import yaml

    from amphitrite.schemas import bounded_yaml

    if len(text) > MAX_CHARACTERS:
        return [Violation(_AT, f"has {len(text)} characters; at most {MAX_CHARACTERS} are allowed", _SHORTEN)]
    try:
        config = bounded_yaml.load(text)
    except yaml.YAMLError as exc:
        return [Violation(_AT, str(exc), _GIVE)]
    if not isinstance(config, Mapping) or not _entries(config, "clusters"):
        return [Violation(_AT, "has no clusters", _GIVE)]
    contexts = [entry.get("name") for entry in config.get("contexts") or () if isinstance(entry, Mapping)]
    if config.get("current-context") not in contexts:
        return [
            Violation(
                _AT, "has a current-context that is not one of its contexts", "set it: kubectl config use-context NAME"
            )
        ]
    violations = []
    inner = [*_entries(config, "clusters", "cluster"), *_entries(config, "users", "user")]
    for word in _PROGRAMS:
        if any(word in entry for entry in inner):
            hint = "use the token of a service account: kubectl create token"
            violations.append(
                Violation(_AT, f"gets credentials from a program ({word}), which this server does not run", hint)
            )
    for word in _FILES:
        if any(word in entry for entry in inner):
            message = f"names a file ({word}), which this server does not read"
            violations.append(
                Violation(_AT, message, "include its content: kubectl config view --raw --minify --flatten")
            )
    return violations


def _entries(config: Mapping[str, Any], field: str, inner: str | None = None) -> list[Mapping[str, Any]]:
    """The objects in the list ``field``, or their part ``inner``."""
    listed = config.get(field)
    entries = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    if inner is None:
        return entries
    return [one[inner] for one in entries if isinstance(one.get(inner), Mapping)]
