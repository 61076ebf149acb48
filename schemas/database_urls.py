"""Addresses of databases as users write them.

Decides that none with a password is taken from the command line, where every user of the machine
can read it. Must not know which databases there are or who connects to them.
"""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from amphitrite.schemas.errors import Error

_HINT = "set PGPASSWORD, or add the password to the file ~/.pgpass (PGPASSFILE), and leave it out of the URL"


def refuse_password(option: str, url: str | None, *, variable: str | None = None) -> None:
    """Raises Error BadArgument if ``url``, the value of ``option``, has a password.

    ``variable``: of the environment, which takes the whole URL too.
    """
    try:
        parts = urlsplit(url or "")
        found = parts.password or parse_qs(parts.query).get("password")
    except ValueError:
        return  # Not a URL; who reads it says so.
    if found:
        hint = f"{_HINT}; or set {variable} to the whole URL" if variable else _HINT
        message = f"{option} has a password, which every user of this machine can read among the arguments"
        raise Error("BadArgument", message, target=option, hint=hint)
