"""The public keys of an OpenID Connect issuer, fetched every few minutes.

Decides what is asked of it, how much of an answer is read, which keys are taken over, and that what was last had stays
while it does not answer. Must not know what the keys are for.
Source: OpenID Connect Discovery 1.0, section 4; RFC 7517.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt

from amphitrite.schemas.errors import Error

log = logging.getLogger(__name__)

#: How often keys are fetched, and how soon again after a failure (seconds).
REFRESH_S, RETRY_S = 300.0, 15.0
#: For each of the two requests.
TIMEOUT_S, MAX_BYTES, MAX_KEYS = 10.0, 1024 * 1024, 64
#: What a proxy can verify, by the kind of key; symmetric keys are nobody's business but the issuer's.
_MEMBERS = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
_ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
_CURVES = frozenset({"P-256", "P-384", "P-521", "Ed25519"})

Get = Callable[[str], bytes]


class IssuerKeys:
    """``changed`` is called when ``known`` has. ``get``: the body at an address; raises Error("RuntimeUnavailable")."""

    def __init__(self, issuer: str, changed: Callable[[], None], get: Get | None = None) -> None:
        self._issuer, self._changed, self._get = issuer, changed, get or fetch
        self._known: str | None = None

    def known(self) -> str | None:
        """The JWKS that was had last."""
        return self._known

    def refresh(self) -> None:
        """Raises Error("RuntimeUnavailable"), leaving what is known."""
        jwks = fetch_keys(self._issuer, self._get)
        if jwks != self._known:
            self._known = jwks
            self._changed()

    def run(self, stop: threading.Event) -> None:
        """Until ``stop`` is set."""
        while not stop.is_set():
            try:
                self.refresh()
                pause = REFRESH_S
            except Error as error:
                log.warning("keys of the issuer %s: %s; what is known of it stays", self._issuer, error.message)
                pause = RETRY_S
            stop.wait(pause)


def fetch_keys(issuer: str, get: Get) -> str:
    """The JWKS of the issuer, less what no proxy can use, in an order of its own: the same keys give the same text.

    Raises Error("RuntimeUnavailable")."""
    about = _object(get(f"{issuer.rstrip('/')}/.well-known/openid-configuration"), "its configuration")
    if about.get("issuer") != issuer:
        raise _unusable(f"it calls itself {str(about.get('issuer'))[:200]!r}; ML_SCORING_ISSUER must be just that")
    address = about.get("jwks_uri")
    if not isinstance(address, str) or not _is_https(address):
        raise _unusable("its jwks_uri is no https address")
    listed = _object(get(address), "its key set").get("keys")
    if not isinstance(listed, list):
        raise _unusable("its key set holds no list of keys")
    taken = [key for key in map(_usable, listed[:MAX_KEYS]) if key is not None]
    if not taken:
        raise _unusable("none of its keys can be used: RSA, EC and Ed25519 keys for signatures can")
    return json.dumps({"keys": sorted(taken, key=lambda key: sorted(key.items()))}, sort_keys=True)


def fetch(url: str) -> bytes:
    """At most ``MAX_BYTES``, within ``TIMEOUT_S`` for each step, without following anything."""
    try:
        with httpx.stream("GET", url, timeout=TIMEOUT_S, follow_redirects=False) as answer:
            if answer.status_code != 200:
                raise _unusable(f"{url} answered {answer.status_code}")
            body = bytearray()
            for part in answer.iter_bytes():
                body += part
                if len(body) > MAX_BYTES:
                    raise _unusable(f"the answer of {url} has more than {MAX_BYTES} bytes")
            return bytes(body)
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        raise _unusable(f"no answer from {url}: {exc}") from exc


def _usable(jwk: Any) -> dict[str, str] | None:
    """The public members alone, of a key that proxies can verify signatures with."""
    if not isinstance(jwk, dict) or jwk.get("use", "sig") != "sig":
        return None
    members = _MEMBERS.get(str(jwk.get("kty")))
    algorithm = jwk.get("alg")
    if members is None or algorithm not in (None, *_ALGORITHMS) or jwk.get("crv", "P-256") not in _CURVES:
        return None
    named = ("kty", *members, *(name for name in ("kid", "alg") if jwk.get(name) is not None))
    if not all(isinstance(jwk.get(name), str) for name in named):
        return None
    public = {name: jwk[name] for name in named}
    try:
        jwt.PyJWK(public)
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    return public


def _object(body: bytes, what: str) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise _unusable(f"{what} is not JSON") from exc
    if not isinstance(found, dict):
        raise _unusable(f"{what} is no JSON object")
    return found


def _is_https(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.hostname) and "@" not in parts.netloc


def _unusable(message: str) -> Error:
    return Error("RuntimeUnavailable", message)
