"""Tokens good and bad, and the issuers of a routing table that tells them apart."""

from __future__ import annotations

import json
import time
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from amphitrite.dataplane.table.routing_table import TokenIssuer

ISSUER, AUDIENCE = "urn:test:endpoints", "urn:test:scoring"
OIDC_ISSUER, OIDC_AUDIENCE = "https://issuer.test/tenant", "https://ml.azure.com"


@cache
def pair(kid: str) -> rsa.RSAPrivateKey:
    """One key pair for each name."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def jwks(*kids: str) -> str:
    keys = [{**RSAAlgorithm.to_jwk(pair(kid).public_key(), as_dict=True), "kid": kid, "alg": "RS256"} for kid in kids]
    return json.dumps({"keys": keys})


def issuer(*kids: str) -> TokenIssuer:
    """Ours, with these keys."""
    return TokenIssuer("aml_token", ISSUER, (AUDIENCE,), jwks(*kids))


ISSUERS = (TokenIssuer("aad_token", OIDC_ISSUER, (OIDC_AUDIENCE,), jwks("oidc")), issuer("one", "two"))


def binding(endpoint: str) -> str:
    """What binds a token to this endpoint, and to no earlier one of its name."""
    return f"the second {endpoint}"


def mint(endpoint: str = "tokens", kid: str = "one", *, key: Any = None, alg: str = "RS256", **changed: Any) -> str:
    """A token for ``endpoint``. ``key``: signs instead of the one that ``kid`` names; claims of
    None are left out, and so is ``binding`` for what is no endpoint."""
    now = int(time.time())
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "test", "iat": now, "nbf": now, "exp": now + 3600}
    bound = binding(endpoint) if isinstance(endpoint, str) else None
    claims = {**claims, "endpoint": endpoint, "binding": bound, **changed}
    given = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(given, pair(kid) if key is None else key, algorithm=alg, headers={"kid": kid})


def oidc(**changed: Any) -> str:
    """A token of the OpenID Connect issuer."""
    return mint(kid="oidc", **{"iss": OIDC_ISSUER, "aud": OIDC_AUDIENCE, "endpoint": None, "binding": None, **changed})
