"""The JSON Web Tokens that clients score with, signed by any control plane of a database.

Decides the claims of a token, and how its keys look to those who verify it
(``amphitrite.dataplane.envoy.filters.jwt``). ``core.planning.key_rotation`` decides which key
signs. Must not know HTTP, nor who may have a token.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from amphitrite.controlplane.core.planning import key_rotation
from amphitrite.controlplane.core.planning.key_rotation import SigningKey
from amphitrite.controlplane.settings.token_settings import SCORING_RESOURCE, TokenSettings
from amphitrite.dataplane.table.routing_table import Secret, TokenIssuer
from amphitrite.schemas.errors import Error

#: Names rather than URLs, so that tokens stay valid when the control plane moves. The keys identify
#: the issuer.
ENDPOINTS, SCORING, IDENTITY = "urn:amphitrite:endpoints", "urn:amphitrite:scoring", "urn:amphitrite:identity"
_ALGORITHM, _BITS = "RS256", 2048


@dataclass(frozen=True, slots=True)
class EndpointToken:
    """A token for one endpoint. Times: whole seconds since the epoch."""

    text: Secret
    expires_at: int
    refresh_after: int


class ScoringTokens:
    """``keys``: the existing key pairs. ``subject``: whom tokens are issued to. ``clock``: seconds
    since the epoch.

    The methods that issue raise Error("RuntimeUnavailable") until there is a key; the leading
    control plane creates one when it starts.
    """

    def __init__(
        self,
        keys: Callable[[], Iterable[SigningKey]],
        settings: TokenSettings,
        subject: str,
        clock: Callable[[], float],
    ) -> None:
        self._keys, self._settings, self._subject, self._clock = keys, settings, subject, clock

    def for_endpoint(self, name: str, binding: str) -> EndpointToken:
        """A token for the endpoint of this name, spelled as the user wrote it, and for no other.

        ``binding``: the endpoint's (``core.desired.resources.token_binding``).
        """
        now = self._clock()
        claims = {"iss": ENDPOINTS, "aud": SCORING, "endpoint": name, "binding": binding}
        text, expires_at = self._sign(claims, now)
        return EndpointToken(text, expires_at, int(now + key_rotation.refresh_after_s(self._settings.schedule)))

    def for_resource(self, resource: str) -> tuple[Secret, int]:
        """A token of the issuer for ``aad_token`` for ``SCORING_RESOURCE``, and its lifetime in
        seconds.

        Raises Error("Unsupported") if another server is that issuer.
        """
        if self._settings.issuer is not None:
            raise Error(
                "Unsupported",
                f"tokens for {resource} come from {self._settings.issuer} (ML_SCORING_ISSUER), not from this server",
                target="resource",
                hint="use a token of that issuer; ml online-endpoint invoke sends the one in ML_SCORING_TOKEN",
            )
        text, _ = self._sign({"iss": IDENTITY, "aud": resource}, self._clock())
        return text, self._settings.lifetime_s

    def accepts(self, text: str, mode: str, binding: str) -> bool:
        """Whether ``text`` is a token of this server that proxies accept in ``mode`` (``aml_token``
        or ``aad_token``) for the endpoint with this ``binding``.

        Tokens of another issuer are not: only proxies know it.
        """
        own_issuer = mode == "aml_token" or self._settings.issuer is None
        issuer, audience = (ENDPOINTS, SCORING) if mode == "aml_token" else (IDENTITY, SCORING_RESOURCE)
        keys = {key.id: key for key in self._keys()}
        try:
            signer = keys.get(jwt.get_unverified_header(text).get("kid", ""))
            if signer is None or not own_issuer:
                return False
            public = _private_key(signer.private_key).public_key()
            claims = jwt.decode(
                text,
                public,
                [_ALGORITHM],
                audience=[audience, f"{audience}/"],
                issuer=issuer,
                options={"verify_exp": False, "verify_nbf": False, "verify_iat": False},
            )
        except jwt.InvalidTokenError:
            return False
        # By our own clock, as for issuing.
        current = int(claims.get("nbf", 0)) <= self._clock() < int(claims.get("exp", 0))
        return current and (mode == "aad_token" or claims.get("binding") == binding)

    def _sign(self, claims: Mapping[str, Any], now: float) -> tuple[Secret, int]:
        key = key_rotation.signing_key(self._keys(), self._settings.schedule, now)
        if key is None:
            message = "there is no key to sign a token yet; the leading control plane is about to create one"
            raise Error("RuntimeUnavailable", message, hint="try again")
        issued, expires_at = int(now), int(now) + self._settings.lifetime_s
        times = {"iat": issued, "nbf": issued, "exp": expires_at}
        payload = {**claims, "sub": self._subject, **times, "jti": uuid.uuid4().hex}
        return Secret(
            jwt.encode(payload, _private_key(key.private_key), _ALGORITHM, headers={"kid": key.id})
        ), expires_at


def is_for_scoring(resource: str) -> bool:
    """Whether ``resource`` is the one of scoring tokens."""
    return resource.rstrip("/") == SCORING_RESOURCE


def make_key(now: float) -> SigningKey:
    """A new key pair. Its id is derived from the public key."""
    private = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = private.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return SigningKey(hashlib.sha256(public).hexdigest()[:32], Secret(pem.decode("ascii")), now)


def issuers(keys: Iterable[SigningKey], *, identity: bool) -> tuple[TokenIssuer, ...]:
    """This server as an issuer, for the proxies. ``identity``: it is also the issuer for
    ``aad_token``."""
    public = [_public_jwk(one) for one in keys]
    if not public:
        return ()
    jwks = json.dumps({"keys": public}, sort_keys=True)
    own_issuer = TokenIssuer("aml_token", ENDPOINTS, (SCORING,), jwks)
    return (TokenIssuer("aad_token", IDENTITY, (SCORING_RESOURCE,), jwks), own_issuer) if identity else (own_issuer,)


def _public_jwk(key: SigningKey) -> dict[str, str]:
    """The public key as a JSON Web Key (RFC 7517)."""
    jwk: dict[str, str] = RSAAlgorithm.to_jwk(_private_key(key.private_key).public_key(), as_dict=True)
    return {**{name: jwk[name] for name in ("kty", "n", "e")}, "kid": key.id, "alg": _ALGORITHM, "use": "sig"}


@lru_cache(maxsize=8)
def _private_key(pem: Secret) -> rsa.RSAPrivateKey:
    loaded = serialization.load_pem_private_key(pem.reveal().encode("ascii"), password=None)
    if not isinstance(loaded, rsa.RSAPrivateKey):
        raise Error("InternalServerError", "a signing key in the database is not an RSA key")
    return loaded
