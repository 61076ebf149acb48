"""The ways in for clients that sign in by themselves: cloud metadata, and a client's secret for a
token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msal
import pytest

from amphitrite.controlplane.auth import scoring_tokens

NOBODY = {"Authorization": ""}
TOKEN = "/amphitrite/oauth2/v2.0/token"


def form(world: Any, **changed: str | None) -> Mapping[str, str]:
    """What azure-identity's ClientSecretCredential sends, and changes to it; None leaves a field
    out."""
    sent = {
        "grant_type": "client_credentials",
        "client_id": "amphitrite",
        "client_secret": world.services.credentials.identity_header.reveal(),
        "client_info": "1",
        "scope": "https://management.azure.com/.default",
        **changed,
    }
    return {name: value for name, value in sent.items() if value is not None}


def test_the_metadata_are_of_the_address_that_was_asked(unchanged: Any) -> None:
    """(a) 2: ``resourceManager`` must be a substring of the URL."""
    url = "https://test:8443/metadata/endpoints?api-version=2022-09-01"
    answer = unchanged.client.get(url, headers=NOBODY)
    assert answer.json() == [
        {
            "name": "Amphitrite",
            "portal": "https://test:8443/",
            "resourceManager": "https://test:8443",
            "authentication": {"loginEndpoint": "https://test:8443", "audiences": ["https://test:8443"]},
            "suffixes": {"storage": "core.windows.net"},
        }
    ]
    assert answer.json()[0]["resourceManager"] in url


def test_the_authority_names_its_addresses(unchanged: Any) -> None:
    answer = unchanged.client.get("/Amphitrite/v2.0/.well-known/openid-configuration", headers=NOBODY)
    assert answer.status_code == 200
    assert answer.json()["token_endpoint"] == f"https://test:8443{TOKEN}"
    assert answer.json()["authorization_endpoint"].startswith("https://test:8443/amphitrite/")


def test_the_right_secret_is_traded_for_the_token(unchanged: Any) -> None:
    answer = unchanged.client.post(TOKEN, data=form(unchanged), headers=NOBODY)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    body = answer.json()
    assert (body["token_type"], body["access_token"]) == ("Bearer", unchanged.services.credentials.token.reveal())
    assert 0 < body["expires_in"] <= 24 * 3600


def test_to_score_it_is_another_token(world: Any) -> None:
    sent = form(world, scope="https://ml.azure.com/.default")
    answer = world.client.post(TOKEN, data=sent, headers=NOBODY)
    assert (answer.status_code, answer.json()["error"]) == (503, "temporarily_unavailable")
    world.store.change_signing_keys((scoring_tokens.make_key(world.now[0]),), ())
    body = world.client.post(TOKEN, data=sent, headers=NOBODY).json()
    assert (body["access_token"].count("."), body["expires_in"] > 0) == (2, True)


@pytest.mark.parametrize(
    ("changed", "status", "error"),
    [
        ({"client_secret": "x"}, 401, "invalid_client"),
        ({"client_secret": "é"}, 401, "invalid_client"),
        ({"client_secret": None}, 401, "invalid_client"),
        ({"client_id": "other"}, 401, "invalid_client"),
        ({"client_id": None}, 401, "invalid_client"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"grant_type": None}, 400, "unsupported_grant_type"),
        ({"scope": None}, 400, "invalid_scope"),
        ({"scope": "/.default"}, 400, "invalid_scope"),
        ({"scope": "https://management.azure.com/"}, 400, "invalid_scope"),
        ({"scope": "a/.default b/.default"}, 400, "invalid_scope"),
    ],
)
def test_refusals_are_oauths(unchanged: Any, changed: dict[str, Any], status: int, error: str) -> None:
    answer = unchanged.client.post(TOKEN, data=form(unchanged, **changed), headers=NOBODY)
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert answer.json()["error_description"]
    assert "WWW-Authenticate" not in answer.headers


def test_msal_passes_the_reason_on(unchanged: Any) -> None:
    """The library below azure-identity words what a user reads."""
    app = msal.ConfidentialClientApplication(
        "amphitrite",
        client_credential="wrong",
        authority="https://test:8443/amphitrite",
        instance_discovery=False,
        http_client=unchanged.client,
    )
    result = app.acquire_token_for_client(["https://management.azure.com/.default"])
    assert result["error"] == "invalid_client"
    assert "`ml server env --authentication environment`" in result["error_description"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"%ff=1",
        b"{}",
        b"&".join(b"f%d=1" % number for number in range(40)),
        b"client_secret=a&client_secret=b",
    ],
)
def test_what_is_no_form_is_refused(unchanged: Any, body: bytes) -> None:
    answer = unchanged.client.post(TOKEN, content=body, headers=NOBODY)
    assert (answer.status_code, set(answer.json())) == (400, {"error", "error_description"})


def test_another_tenant_and_too_much_are_refused(unchanged: Any) -> None:
    for answer in (
        unchanged.client.get("/other/v2.0/.well-known/openid-configuration", headers=NOBODY),
        unchanged.client.post("/other/oauth2/v2.0/token", data=form(unchanged), headers=NOBODY),
    ):
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_tenant")
    answer = unchanged.client.post(TOKEN, content=b"x" * 16_385, headers=NOBODY)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "RequestTooLarge")


@pytest.mark.parametrize("path", ["/a/amphitrite/oauth2/v2.0/token", f"{TOKEN}/", "/metadata/endpoints/x", "/oauth2"])
def test_nothing_beside_them_is_open(unchanged: Any, path: str) -> None:
    assert unchanged.client.get(path, headers=NOBODY).status_code == 401
