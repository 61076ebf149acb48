"""HTTP without TLS at the scoring port: it is told to use HTTPS, and nothing else. Real Envoy."""

from __future__ import annotations

import contextlib
import json
import socket

import grpc
import httpx
import pytest

from .agents import BEARER, INFER, KEY, RunningAgent
from .refusals import code_and_message
from .test_abuse import HEAD

pytestmark = pytest.mark.serving


def said_to(agent: RunningAgent, request: bytes) -> bytes:
    """All that comes until the other side ends the connection."""
    answer = b""
    with socket.create_connection(("127.0.0.1", agent.port), timeout=30) as connection:
        connection.sendall(request)
        with contextlib.suppress(ConnectionResetError):
            while more := connection.recv(65536):
                answer += more
    return answer


@pytest.mark.parametrize("path", [INFER, "/endpoints/images/score", "/healthz", "/"])
@pytest.mark.parametrize("body", [b"", b"x" * 5_000_000], ids=len)
def test_the_answer_names_the_address_with_https(scoring: RunningAgent, path: str, body: bytes) -> None:
    address = f"http://127.0.0.1:{scoring.port}"
    with httpx.Client(base_url=address, trust_env=False, timeout=30) as client:
        answer = client.post(path, headers=BEARER, content=body)
    assert answer.status_code == 400
    assert answer.headers["connection"] == "close"
    code, message = code_and_message(answer)
    assert code == "HttpsRequired"
    assert message.endswith(f"the address is https://127.0.0.1:{scoring.port}")
    assert KEY not in answer.text


def test_a_connection_ends_with_its_first_answer(scoring: RunningAgent) -> None:
    request = f"{HEAD}content-length: 2\r\n\r\n{{}}".encode()
    assert said_to(scoring, request * 3).count(b"HttpsRequired") == 1


@pytest.mark.parametrize("garbage", [b"hello world\r\n\r\n", b"\x00" * 64], ids=repr)
def test_what_is_neither_http_nor_tls_is_told_so_too(scoring: RunningAgent, garbage: bytes) -> None:
    head, _, body = said_to(scoring, garbage).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"]["code"] == "HttpsRequired"


def test_grpc_gets_it_as_a_status(scoring: RunningAgent) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{scoring.port}") as channel:
        live = channel.unary_unary("/inference.GRPCInferenceService/ServerLive")
        with pytest.raises(grpc.RpcError) as refused:
            live(b"", metadata=[("authorization", BEARER["authorization"])], timeout=30)
    assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert f"https://127.0.0.1:{scoring.port}" in refused.value.details()
