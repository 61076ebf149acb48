"""The public keys of an OpenID Connect issuer, fetched every few minutes.

Decides what is requested, how much of an answer is read, which keys are accepted, and that the last
keys stay in use while the issuer does not answer. Must not know what the keys are for. Sources:
OpenID Connect Discovery 1.0, section 4; RFC 7517.
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

#: Seconds between fetches, and after a failure.
REFRESH_S, RETRY_S = 300.0, 15.0
#: Limits of each of the two requests: seconds, bytes, keys.
TIMEOUT_S, MAX_BYTES, MAX_KEYS = 10.0, 1024 * 1024, 64
#: The required members of keys that a proxy can use, by type. Symmetric keys are refused.
_MEMBERS = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
_ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
_CURVES = frozenset({"P-256", "P-384", "P-521", "Ed25519"})

Get = Callable[[str], bytes]


class IssuerKeys:
    """``changed`` is called when ``jwks`` has changed. ``get``: returns the body at a URL or raises
    Error("RuntimeUnavailable")."""

    def __init__(self, issuer: str, changed: Callable[[], None], get: Get | None = None) -> None:
        self._issuer, self._changed, self._get = issuer, changed, get or fetch
        self._jwks: str | None = None

    def jwks(self) -> str | None:
        """The JSON Web Key Set that was fetched last, None before the first."""
        return self._jwks

    def refresh(self) -> None:
        """Fetches the keys. If it raises Error("RuntimeUnavailable"), the last ones stay."""
        jwks = fetch_keys(self._issuer, self._get)
        if jwks != self._jwks:
            self._jwks = jwks
            self._changed()

    def run(self, stop: threading.Event) -> None:
        """Refreshes until ``stop`` is set."""
        while not stop.is_set():
            try:
                self.refresh()
                pause = REFRESH_S
            except Error as error:
                log.warning(
                    "cannot fetch the keys of issuer %s: %s; the last keys stay in use", self._issuer, error.message
                )
                pause = RETRY_S
            except Exception:
                log.exception("cannot fetch the keys of issuer %s; the last keys stay in use", self._issuer)
                pause = RETRY_S
            stop.wait(pause)


def fetch_keys(issuer: str, get: Get) -> str:
    """The issuer's JSON Web Key Set, without keys that no proxy can use, sorted so that equal sets
    give equal text.

    Raises Error("RuntimeUnavailable").
    """
    configuration = _object(get(f"{issuer.rstrip('/')}/.well-known/openid-configuration"), "its configuration")
    if configuration.get("issuer") != issuer:
        issuer_name = str(configuration.get("issuer"))[:200]
        raise _unavailable(f"its configuration names the issuer {issuer_name!r}, not the value of ML_SCORING_ISSUER")
    address = configuration.get("jwks_uri")
    if not isinstance(address, str) or not _is_https(address):
        raise _unavailable("its jwks_uri is not an https URL")
    keys = _object(get(address), "its key set").get("keys")
    if not isinstance(keys, list):
        raise _unavailable("its key set contains no list of keys")
    usable = [key for key in map(_usable, keys[:MAX_KEYS]) if key is not None]
    if not usable:
        raise _unavailable("it has no supported key; supported: RSA, EC and Ed25519 keys for signatures")
    return json.dumps({"keys": sorted(usable, key=lambda key: sorted(key.items()))}, sort_keys=True)


def fetch(url: str) -> bytes:
    """Reads at most ``MAX_BYTES``, with ``TIMEOUT_S`` for each step, without following
    redirects."""
    try:
        with httpx.stream("GET", url, timeout=TIMEOUT_S, follow_redirects=False) as answer:
            if answer.status_code != 200:
                raise _unavailable(f"{url} answered {answer.status_code}")
            body = bytearray()
            for part in answer.iter_bytes():
                body += part
                if len(body) > MAX_BYTES:
                    raise _unavailable(f"the answer from {url} has more than {MAX_BYTES} bytes")
            return bytes(body)
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        raise _unavailable(f"no answer from {url}: {exc}") from exc


def _usable(jwk: Any) -> dict[str, str] | None:
    """The public members of a key that proxies can verify signatures with; None for any
    other key."""
    if not isinstance(jwk, dict) or jwk.get("use", "sig") != "sig":
        return None
    members = _MEMBERS.get(str(jwk.get("kty")))
    algorithm = jwk.get("alg")
    if members is None or algorithm not in (None, *_ALGORITHMS) or jwk.get("crv", "P-256") not in _CURVES:
        return None
    members_present = ("kty", *members, *(name for name in ("kid", "alg") if jwk.get(name) is not None))
    if not all(isinstance(jwk.get(name), str) for name in members_present):
        return None
    public = {name: jwk[name] for name in members_present}
    try:
        jwt.PyJWK(public)
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    return public


def _object(body: bytes, what: str) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise _unavailable(f"{what} is not JSON") from exc
    if not isinstance(value, dict):
        raise _unavailable(f"{what} is not a JSON object")
    return value


def _is_https(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.hostname) and "@" not in parts.netloc


def _unavailable(message: str) -> Error:
    return Error("RuntimeUnavailable", message)
