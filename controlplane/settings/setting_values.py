"""Values of settings as text: what a number, a port, a choice or an address may be.

Decides when text is refused and in which words. Must not know which settings there are. No value of a URL is repeated
in a refusal: it may hold a password.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from amphitrite.schemas.errors import Error

_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*")


def integer(name: str, text: str | None, default: int) -> int:
    """``text`` as a whole number; ``default`` for none. Raises Error("BadArgument")."""
    if text is None or text == "":
        return default
    try:
        return int(text)
    except ValueError as exc:
        raise Error("BadArgument", f"{name} is {text!r}; a whole number is needed", target=name) from exc


def port(name: str, argument: int | None, text: str | None, default: int) -> int:
    """Raises Error("BadArgument")."""
    value = argument if argument is not None else integer(name, text, default)
    if not 1 <= value <= 65535:
        raise Error("BadArgument", f"{name} is {value}; allowed: 1 to 65535", target=name)
    return value


def choice(name: str, value: str, allowed: Sequence[str]) -> str:
    """``value``, which is one of ``allowed``. Raises Error("BadArgument")."""
    if value not in allowed:
        message = f"{name} {value!r} is not offered; allowed: {', '.join(allowed)}"
        raise Error("BadArgument", message, target=name)
    return value


def https(name: str, text: str | None) -> str | None:
    """``https://HOST[:PORT][/PATH]`` without a slash at its end. Raises Error("BadArgument")."""
    if not text:
        return None
    parts = urlsplit(text)
    if parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment or "@" in parts.netloc:
        message = f"{name} must be https://HOST[:PORT][/PATH] and nothing more"
        raise Error("BadArgument", message, target=name)
    return text.rstrip("/")


def domain(name: str, text: str | None) -> str | None:
    """A name of the domain name system, in lower case and without a dot at its end. Raises Error("BadArgument")."""
    if not text:
        return None
    found = text.lower().removesuffix(".")
    # An endpoint's name and a dot come before it, and all is at most 253 characters.
    if not _DOMAIN.fullmatch(found) or len(found) > 220 or found.rpartition(".")[2].isdigit():
        message = f"{name} is {text!r}; a domain such as ml.example.org is needed, without a port or a star"
        raise Error("BadArgument", message, target=name)
    return found


def names(text: str | None) -> tuple[str, ...]:
    """``a,b`` as ("a", "b")."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def labels(name: str, text: str | None) -> Mapping[str, str]:
    """``key=value,...`` as a mapping. Raises Error("BadArgument")."""
    found = {}
    for part in names(text):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise Error("BadArgument", f"{name}: {part!r} is not key=value", target=name)
        found[key.strip()] = value.strip()
    return found
