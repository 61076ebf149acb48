"""The app behind TLS as it is in production, asked by stock Azure credentials and by plain
clients."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import uvicorn
from azure.identity import DefaultAzureCredential, EnvironmentCredential, ManagedIdentityCredential

from amphitrite.controlplane.auth import certificates
from amphitrite.controlplane.process.app import create_app

from ...waiting import wait_until

SCOPE = "https://management.azure.com/.default"


@pytest.fixture
def url(world: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a live server whose environment variables are set as ``ml server env`` prints
    them."""
    made = certificates.ensure(world.services.settings.home, ["127.0.0.1", "localhost"], time.time())
    world.now[0] = time.time()
    config = uvicorn.Config(
        create_app(world.services),
        ssl_certfile=str(made.certificate_file),
        ssl_keyfile=str(made.key_file),
        log_config=None,
        access_log=False,
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        address = f"https://127.0.0.1:{listener.getsockname()[1]}"
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{address}/identity/token")
        monkeypatch.setenv("IDENTITY_HEADER", world.services.credentials.identity_header.reveal())
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(made.bundle_file))
        monkeypatch.setenv("SSL_CERT_FILE", str(made.bundle_file))
        yield address
        server.should_exit = True
        thread.join(60)
    assert not thread.is_alive()


@pytest.mark.parametrize("kind", [ManagedIdentityCredential, DefaultAzureCredential])
def test_stock_credentials_get_a_token_that_opens_the_workspace(url: str, world: Any, kind: Any) -> None:
    with kind() as credential:
        token = credential.get_token(SCOPE)
    assert token.token == world.services.credentials.token.reveal()
    assert token.expires_on > time.time() + 3600
    context = ssl.create_default_context()
    with httpx.Client(
        verify=context, base_url=url, headers={"Authorization": f"Bearer {token.token}"}, timeout=30
    ) as client:
        workspace = "subscriptions/local/resourceGroups/local/providers/Microsoft.MachineLearningServices/workspaces"
        assert client.get(f"{workspace}/local").json()["location"] == "local"
        shown = client.get(f"{workspace}/local/datastores/workspaceblobstore").json()
        assert shown["properties"]["accountName"] == f"{url.removeprefix('https://')}/storage/local"


@pytest.mark.parametrize("kind", [EnvironmentCredential, DefaultAzureCredential])
def test_a_clients_secret_is_traded_for_the_token(
    url: str, world: Any, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = world.services.credentials.identity_header.reveal()
    names = {"AUTHORITY_HOST": url, "TENANT_ID": "amphitrite", "CLIENT_ID": "amphitrite", "CLIENT_SECRET": secret}
    for name, value in names.items():
        monkeypatch.setenv(f"AZURE_{name}", value)
    monkeypatch.delenv("IDENTITY_ENDPOINT")
    with kind(disable_instance_discovery=True) as credential:
        assert credential.get_token(SCOPE).token == world.services.credentials.token.reveal()


def test_a_large_body_is_streamed_and_a_client_that_leaves_is_no_fault(
    url: str, world: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    token = world.services.credentials.token.reveal()
    blob = f"{url}/storage/local/azureml-blobstore/large"
    headers = {"Authorization": f"Bearer {token}", "x-ms-blob-type": "BlockBlob"}

    def leaving() -> Iterator[bytes]:
        yield b"x" * 3_000_000
        raise ConnectionError("the client goes away")

    with httpx.Client(verify=ssl.create_default_context(), headers=headers, timeout=30) as client:
        sent = client.put(blob, content=(b"x" * 1_000_000 for _ in range(8)))
        assert (sent.status_code, client.head(blob).headers["Content-Length"]) == (201, "8000000")
        with pytest.raises(ConnectionError):
            client.put(f"{blob}2", content=leaving())
        assert client.head(f"{blob}2").status_code == 404
    assert [record for record in caplog.records if record.exc_info] == []
    temporary = world.services.settings.home.models / "temporary"
    wait_until(lambda: list(temporary.iterdir()) == [], "nothing of it is left")
