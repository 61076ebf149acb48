"""The fetcher's environment variables, read once.

Decides their names, their defaults and which values are refused. Must not know what they are for.

================================  ==================================================================
AMPHITRITE_FETCH_URL              the control plane as this pod reaches it
AMPHITRITE_FETCH_GRANT            what opens the model; a secret
AMPHITRITE_FETCH_DIGEST           the model version: SHA-256 of its manifest
AMPHITRITE_FETCH_CACHE            directory; the model will be ``<cache>/<digest>``
AMPHITRITE_FETCH_CA               PEM file of authorities to trust besides the system's
AMPHITRITE_FETCH_CACHE_BYTES      size limit of the cache; models that nothing uses are removed
AMPHITRITE_FETCH_STALL_TIMEOUT_S  it gives up after so many seconds without a new byte; 60
AMPHITRITE_FETCH_PROXY            URL of an HTTP proxy; HTTPS_PROXY is ignored
AMPHITRITE_FETCH_RESULT           file for the result; /dev/termination-log
================================  ==================================================================
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from amphitrite.dataplane.fetch.fetch_failure import FetchFailure

_PREFIX = "AMPHITRITE_FETCH_"
RESULT = "/dev/termination-log"


@dataclass(frozen=True, slots=True)
class Settings:
    """``url`` has no slash at its end. None: not set."""

    url: str
    grant: str = field(repr=False)
    digest: str
    cache: Path
    ca: Path | None = None
    cache_bytes: int | None = None
    stall_timeout_s: float = 60.0
    proxy: str | None = field(default=None, repr=False)


def read(environ: Mapping[str, str]) -> Settings:
    """Raises FetchFailure with the name of the variable."""
    ca, size = environ.get(f"{_PREFIX}CA"), environ.get(f"{_PREFIX}CACHE_BYTES")
    return Settings(
        url=_url(environ),
        grant=_text(environ, "GRANT").removeprefix("Bearer ").strip(),
        digest=_digest(environ),
        cache=Path(_text(environ, "CACHE")),
        ca=Path(ca) if ca else None,
        cache_bytes=int(_number(environ, "CACHE_BYTES", 0)) if size else None,
        stall_timeout_s=_number(environ, "STALL_TIMEOUT_S", 60.0),
        proxy=environ.get(f"{_PREFIX}PROXY") or None,
    )


def result_file(environ: Mapping[str, str]) -> Path:
    return Path(environ.get(f"{_PREFIX}RESULT") or RESULT)


def _url(environ: Mapping[str, str]) -> str:
    text = _text(environ, "URL").rstrip("/")
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        raise FetchFailure(f"{_PREFIX}URL is {text!r}; the control plane's https://HOST:PORT is needed")
    return text


def _digest(environ: Mapping[str, str]) -> str:
    text = _text(environ, "DIGEST")
    # It becomes the name of a directory.
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise FetchFailure(f"{_PREFIX}DIGEST is {text!r}; 64 hexadecimal digits are needed")
    return text


def _text(environ: Mapping[str, str], name: str) -> str:
    text = environ.get(f"{_PREFIX}{name}", "").strip()
    if not text:
        raise FetchFailure(f"{_PREFIX}{name} is not set")
    return text


def _number(environ: Mapping[str, str], name: str, default: float) -> float:
    text = environ.get(f"{_PREFIX}{name}") or str(default)
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number < float("inf"):
        raise FetchFailure(f"{_PREFIX}{name} is {text!r}; a number above 0 is needed")
    return number
