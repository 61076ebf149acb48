"""Endpoints with tokens, through the whole product: that its parts are wired together.

Which tokens open an endpoint is ``dataplane/test_tokens.py``'s, which keys sign is
``core/test_token_keys.py``'s, and Azure's public script, which shows a token, runs in
``test_az_scripts.py``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import jwt
import pytest

from ..waiting import wait_until
from .models import REQUEST
from .product import Product

pytestmark = pytest.mark.serving

INFER = "v2/models/tiny/infer"
RESOURCE = "https://ml.azure.com"


@pytest.fixture(scope="module")
def product(shared: Product) -> Iterator[Product]:
    """Endpoint ``pass``, whose mode is aml_token, with a deployment; ``other`` likewise and
    ``oidc``, whose mode is aad_token, with none: who is let in is answered 404 there. The mode of
    ``cats`` is key."""
    modes = {"pass": "aml_token", "other": "AMLToken", "oidc": "aad_token"}
    for name, mode in modes.items():
        shared.run("online-endpoint", "create", "-n", name, "--auth-mode", mode)
    shared.deploy("blue", "tiny:1", "--all-traffic", endpoint="pass")
    yield shared
    for name in modes:
        shared.run("online-endpoint", "delete", "-n", name, "-y", check=False)


def pass_now(product: Product) -> None:
    """Have the control plane look around, which it does by itself every few seconds."""
    endpoint = product.rest("GET", "onlineEndpoints/other").json()
    assert product.rest("PUT", "onlineEndpoints/other", endpoint).is_success


def credentials(product: Product, endpoint: str) -> dict[str, Any]:
    found: dict[str, Any] = product.json("online-endpoint", "get-credentials", "-n", endpoint)
    return found


def status(product: Product, endpoint: str, token: str) -> int:
    return product.request(f"/endpoints/{endpoint}/{INFER}", key=token, body=REQUEST).status


def test_a_token_opens_its_endpoint_alone(product: Product) -> None:
    found = credentials(product, "pass")
    assert list(found) == ["accessToken", "expiryTimeUtc", "refreshAfterTimeUtc", "tokenType"]
    assert found["tokenType"] == "Bearer"
    assert time.time() < found["refreshAfterTimeUtc"] < found["expiryTimeUtc"]
    claims = jwt.decode(found["accessToken"], options={"verify_signature": False})
    assert (claims["endpoint"], claims["exp"]) == ("pass", found["expiryTimeUtc"])

    oidc, key = credentials(product, "oidc"), product.keys()[0]
    assert list(oidc) == ["accessToken", "expiryTimeUtc"]
    opened = {
        (name, endpoint): status(product, endpoint, token)
        for name, token in (("pass", found["accessToken"]), ("oidc", oidc["accessToken"]), ("cats", key))
        for endpoint in ("pass", "oidc", "cats", "other")
    }
    assert {pair: code for pair, code in opened.items() if code != 401} == {
        ("pass", "pass"): 200, ("oidc", "oidc"): 404, ("cats", "cats"): 200,
    }  # fmt: skip


def test_invoke(product: Product) -> None:
    product.file("request.json", REQUEST.decode())
    text = product.run("online-endpoint", "invoke", "-n", "pass", "-r", "request.json", "-o", "tsv").stdout
    assert json.loads(text)["outputs"][0]["data"] == [2, 3, 4, 5]
    refused = product.run("online-endpoint", "invoke", "-n", "oidc", "-r", "request.json", check=False).stderr
    assert "answered 404: " in refused and "[NoTraffic]" in refused


def test_a_token_for_scoring_opens_nothing_else(product: Product) -> None:
    scoring = product.identity(RESOURCE)
    claims = jwt.decode(scoring["access_token"], options={"verify_signature": False})
    assert (claims["aud"], str(claims["exp"])) == (RESOURCE, scoring["expires_on"])
    assert product.identity(f"{RESOURCE}/")["access_token"].count(".") == 2
    assert product.identity("https://management.azure.com")["access_token"] == product.token()
    assert product.rest("GET", "onlineEndpoints").status_code == 200
    for token in (scoring["access_token"], credentials(product, "pass")["accessToken"]):
        assert product.rest("GET", "onlineEndpoints", token=token).status_code == 401


def test_a_key_that_grew_old_is_followed(product: Product) -> None:
    """The database is told that the key is a month old: the next pass makes another, which the
    proxy knows before it signs, and the old tokens go on counting."""
    before = credentials(product, "pass")["accessToken"]
    product.execute("UPDATE signing_keys SET created_at = created_at - ?", 31 * 24 * 3600)
    pass_now(product)
    wait_until(lambda: len(product.query("SELECT id FROM signing_keys")) == 2, "there is a second key")
    product.execute(
        "UPDATE signing_keys SET created_at = created_at - ? WHERE created_at > ?", 3600, time.time() - 3600
    )
    after = credentials(product, "pass")["accessToken"]
    assert jwt.get_unverified_header(before)["kid"] != jwt.get_unverified_header(after)["kid"]
    wait_until(lambda: status(product, "pass", after) == 200, "the proxy knows the new key")
    assert status(product, "pass", before) == 200


def test_the_mode_of_an_endpoint_can_change(product: Product) -> None:
    token = credentials(product, "other")["accessToken"]
    product.run("online-endpoint", "update", "-n", "other", "--set", "auth_mode=key")
    key = credentials(product, "other")["primaryKey"]
    assert (status(product, "other", token), status(product, "other", key)) == (401, 404)
    product.run("online-endpoint", "update", "-n", "other", "--set", "auth_mode=aml_token")
    assert (status(product, "other", token), status(product, "other", key)) == (404, 401)


def test_a_token_ends_with_its_endpoint_and_when_it_is_revoked(product: Product) -> None:
    """A new endpoint of the same name is another one, whose owner never gave that token out."""

    def create() -> str:
        product.run("online-endpoint", "create", "-n", "again", "--auth-mode", "aml_token")
        return str(credentials(product, "again")["accessToken"])

    first = create()
    assert status(product, "again", first) == 404
    product.run("online-endpoint", "delete", "-n", "again", "-y")
    second = create()
    assert (status(product, "again", first), status(product, "again", second)) == (401, 404)
    product.run("online-endpoint", "regenerate-keys", "-n", "again")
    third = credentials(product, "again")["accessToken"]
    assert [status(product, "again", token) for token in (first, second, third)] == [401, 401, 404]
    product.run("online-endpoint", "delete", "-n", "again", "-y")


def test_no_secret_is_logged(product: Product) -> None:
    """Neither a token nor the private key that signs them."""
    token = credentials(product, "pass")["accessToken"]
    assert status(product, "pass", token) == 200
    pem = product.query("SELECT private_key FROM signing_keys")[0][0].splitlines()[3]
    said = "".join(path.read_text(errors="replace") for path in product.home.rglob("*.log*"))
    assert said
    assert pem not in said
    assert token.rsplit(".")[-1] not in said
