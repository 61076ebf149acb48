"""Parsing of setting values: numbers, ports, choices, URLs, domains, labels.

Decides which text is valid, and the error message. Must not know which settings exist. Messages do
not repeat URLs, which may contain a password.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from amphitrite.schemas.errors import Error

_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*")
#: Azure's rule for the names of container registries.
_REGISTRY = re.compile(r"[A-Za-z0-9]{5,50}")


def integer(name: str, text: str | None, default: int) -> int:
    """``text`` as a whole number, ``default`` if it is empty. Raises Error("BadArgument")."""
    if text is None or text == "":
        return default
    try:
        return int(text)
    except ValueError as exc:
        raise Error("BadArgument", f"{name} is {text!r}; it must be a whole number", target=name) from exc


def port(name: str, argument: int | None, text: str | None, default: int) -> int:
    """Raises Error("BadArgument")."""
    value = argument if argument is not None else integer(name, text, default)
    if not 1 <= value <= 65535:
        raise Error("BadArgument", f"{name} is {value}; allowed: 1 to 65535", target=name)
    return value


def choice(name: str, value: str, allowed: Sequence[str]) -> str:
    """``value`` if it is one of ``allowed``. Raises Error("BadArgument")."""
    if value not in allowed:
        message = f"{name} {value!r} is not supported; allowed: {', '.join(allowed)}"
        raise Error("BadArgument", message, target=name)
    return value


def https_url(name: str, text: str | None) -> str | None:
    """``https://HOST[:PORT][/PATH]`` without a final slash. Raises Error("BadArgument")."""
    if not text:
        return None
    parts = urlsplit(text)
    if parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment or "@" in parts.netloc:
        message = f"{name} must have the form https://HOST[:PORT][/PATH]"
        raise Error("BadArgument", message, target=name)
    return text.rstrip("/")


def registry(name: str, text: str | None) -> str | None:
    """A name of an Azure container registry. Raises Error("BadArgument")."""
    if not text:
        return None
    if not _REGISTRY.fullmatch(text):
        message = f"{name} is {text!r}; allowed: 5 to 50 letters and digits, the name before .azurecr.io"
        raise Error("BadArgument", message, target=name)
    return text


def domain(name: str, text: str | None) -> str | None:
    """A DNS domain name, in lower case and without a final dot. Raises Error("BadArgument")."""
    if not text:
        return None
    domain_name = text.lower().removesuffix(".")
    # An endpoint's name and a dot precede it; the whole name has at most 253 characters.
    if not _DOMAIN.fullmatch(domain_name) or len(domain_name) > 220 or domain_name.rpartition(".")[2].isdigit():
        message = f"{name} is {text!r}; it must be a domain such as ml.example.org, without a port or wildcard"
        raise Error("BadArgument", message, target=name)
    return domain_name


def names(text: str | None) -> tuple[str, ...]:
    """``a,b`` as ("a", "b")."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def labels(name: str, text: str | None) -> Mapping[str, str]:
    """``key=value,...`` as a mapping. Raises Error("BadArgument")."""
    result = {}
    for part in names(text):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise Error("BadArgument", f"{name}: {part!r} is not key=value", target=name)
        result[key.strip()] = value.strip()
    return result
