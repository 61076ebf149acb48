"""What --debug shows, and that nothing secret is in it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from amphitrite.cli.terminal.request_trace import Trace, mask_secrets, mask_url

SECRET = "s3cr3t-s3cr3t"


@pytest.mark.parametrize(
    "body",
    [
        {"primaryKey": SECRET, "secondaryKey": SECRET},
        {"keyType": "Primary", "keyValue": SECRET},
        {"accessToken": SECRET, "tokenType": "Bearer"},
        {"access_token": SECRET, "refresh_token": SECRET, "id_token": SECRET},
        {"secretsType": "Sas", "sasToken": SECRET},
        {"blobReferenceForConsumption": {"credential": {"sasUri": f"https://h/c?sig={SECRET}"}}},
        {"uri": f"https://h/c?sv=1&sig={SECRET}&se=2"},
        {"error": {"message": f"cannot read https://h/fetch/v1/content/00?expires=1&signature={SECRET}"}},
        {"properties": {"kubeconfig": SECRET}},
        {
            "properties": {
                "environmentVariables": {"AWS_SECRET_ACCESS_KEY": SECRET, "HF_TOKEN": SECRET, "dbPassword": SECRET}
            }
        },
        [{"client_secret": SECRET}],
    ],
)
def test_secrets_are_masked(body: Any) -> None:
    assert SECRET not in str(mask_secrets(body))


def test_what_is_no_secret_is_shown() -> None:
    body = {
        "keyType": "Primary",
        "properties": {"environmentVariables": {"MODE": "fast"}},
        "n": 1,
        "u": "https://h/a?b=c",
    }
    assert mask_secrets(body) == body
    assert mask_url("https://h/c?sv=1&sig=x&se=2#f") == "https://h/c?sv=1&sig=***&se=2#f"


def test_an_exchange_shows_everything_but_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    headers = {"Authorization": f"Bearer {SECRET}", "X-IDENTITY-HEADER": SECRET, "Cookie": SECRET}
    request = httpx.Request(
        "POST", f"https://h/token?sig={SECRET}&a=b", headers=headers, json={"client_secret": SECRET, "x": 1}
    )
    answer = httpx.Response(200, json={"accessToken": SECRET}, headers={"Location": f"https://h/c?sig={SECRET}"})
    Trace(lines=True, bodies=True).print_exchange(request, answer, 0.0125)
    said = capsys.readouterr().err
    assert SECRET not in said
    assert said.splitlines()[0] == "POST https://h/token?sig=***&a=b -> 200 in 12 ms"
    assert '> {"client_secret": "***", "x": 1}' in said
    assert '< {"accessToken": "***"}' in said


def test_a_body_that_is_no_json_is_only_counted(capsys: pytest.CaptureFixture[str]) -> None:
    request = httpx.Request("PUT", "https://h/blob", content=SECRET.encode())
    Trace(lines=False, bodies=True).print_exchange(request, httpx.Response(200, content=SECRET.encode()), 0)
    said = capsys.readouterr().err
    assert SECRET not in said
    assert "< (13 bytes)" in said
