"""Addresses by host name: every rule of a path holds there too, and nothing else is reached. Real
Envoy."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping

import httpx
import pytest

from .agents import BEARER, RunningAgent
from .refusals import code_and_message
from .rule_table import DOMAIN
from .test_rules import ROWS, Row

pytestmark = pytest.mark.serving

PIN = "azureml-model-deployment"
IMAGES = f"images.{DOMAIN}"
INFER = "/v2/models/m/infer"


@pytest.fixture(scope="module")
def by_host(rules: tuple[RunningAgent, object]) -> Iterator[httpx.Client]:
    """A client that asks for any host; the certificate is one for an address."""
    agent, _ = rules
    trust = ssl.create_default_context(cafile=str(agent.certificate))
    trust.check_hostname = False
    # A connection is for one host, and the client would keep it for all.
    alone = httpx.Limits(max_keepalive_connections=0)
    address = agent.client.base_url
    with httpx.Client(base_url=address, verify=trust, limits=alone, timeout=30, trust_env=False) as client:
        yield client


def ask(
    client: httpx.Client,
    host: str,
    path: str,
    *,
    method: str = "POST",
    sni: str | None = None,
    headers: Mapping[str, str] = BEARER,
    content: bytes = b"{}",
) -> httpx.Response:
    """One request to ``host``, the path as it is."""
    extensions = {"target": path.encode(), "sni_hostname": sni or host}
    return client.request(method, "/", headers={"host": host, **headers}, content=content, extensions=extensions)


#: All that are about an endpoint, but for what is only said of paths.
MOVED = [
    row
    for row in ROWS
    if row.path.startswith("/endpoints/") and row.path != "/endpoints/images" and "/images/v2" not in row.path[18:]
]


@pytest.mark.parametrize("row", MOVED, ids=lambda row: row.name)
def test_a_rule_holds_by_host(row: Row, by_host: httpx.Client, scoring: RunningAgent) -> None:
    endpoint, _, path = row.path.removeprefix("/endpoints/").partition("/")
    headers = {"x-ms-client-request-id": "mine", **row.headers}
    answer = ask(by_host, f"{endpoint}.{DOMAIN}", f"/{path}", method=row.method, headers=headers, content=row.body)
    if path == "healthz":  # It is not the proxy's here but the model server's, to who has a key.
        assert answer.status_code == 401
        return
    assert answer.status_code == row.status, answer.text
    assert {k: answer.headers.get(k) for k in row.want} == row.want
    if row.code is not None:
        code, message = code_and_message(answer, "" if row.status == 431 else f"/{path}")
        assert code == row.code
        assert row.says in message


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (IMAGES, 200),
        (f"{IMAGES}:9443", 200),
        (f"{IMAGES}.", 200),
        (f"{IMAGES}.:9443", 200),
        (f"nobody.{DOMAIN}", 404),
        (f"a.{IMAGES}", 404),
        (f"images.{DOMAIN.upper()}", 404),
        (DOMAIN, 404),
        ("127.0.0.1:9443", 404),
        ("images", 404),
        (f"other.{DOMAIN}", 401),
    ],
)
def test_the_host_chooses_the_endpoint(host: str, status: int, by_host: httpx.Client, scoring: RunningAgent) -> None:
    assert ask(by_host, host, INFER, sni=IMAGES, headers={**BEARER, PIN: "blue"}).status_code == status


def test_on_other_connections_the_host_chooses_nothing(by_host: httpx.Client, scoring: RunningAgent) -> None:
    assert ask(by_host, IMAGES, INFER, sni="elsewhere.example").status_code == 404
    headers = {**BEARER, PIN: "blue"}
    by_path = f"/endpoints/images{INFER}"
    assert ask(by_host, IMAGES, by_path, sni="elsewhere.example", headers=headers).status_code == 200


def test_the_path_names_no_other_endpoint_there(by_host: httpx.Client, scoring: RunningAgent) -> None:
    headers = {**BEARER, PIN: "blue", "amphitrite-endpoint": "idle", "amphitrite-scope": "/endpoints/idle"}
    answer = ask(by_host, IMAGES, "/endpoints/idle/v2/models/m/infer", headers=headers)
    assert answer.headers[PIN] == "blue"
    assert answer.json()["path"] == "/endpoints/idle/v2/models/m/infer", "a path of the model server's, who has none"


@pytest.mark.parametrize(
    "authority", [f"{IMAGES}/v2/%72epository/index?", f"{IMAGES}/../x", f"x@{IMAGES}", "", f"{IMAGES}, {IMAGES}"]
)
def test_a_host_that_is_none_opens_nothing(authority: str, scoring: RunningAgent) -> None:
    trust = ssl.create_default_context(cafile=str(scoring.certificate))
    trust.check_hostname = False
    with (
        socket.create_connection(("127.0.0.1", scoring.port), 10) as plain,
        trust.wrap_socket(plain, server_hostname=IMAGES) as connection,
    ):
        head = f"GET /v2 HTTP/1.1\r\nhost: {authority}\r\nauthorization: Bearer primary-key\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(4096).split()[1] in (b"400", b"404")
