"""What the product uses of libraries beyond what they document is still there, and still the same
(decision 0007).

A test that fails here has found a new release of a library. Read what changed there against the
module that rests on it, then renew what is written here.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import subprocess
import sys

import pytest
import uvicorn
from fastapi import APIRouter, FastAPI
from kubernetes import client as kubernetes
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from amphitrite.controlplane.process.connection_limits import ConnectionLimitsProtocol

#: What ``http_protocol.py`` and ``connection_limits.py`` read, set or call.
OF_A_CONNECTION = {
    *("app", "config", "conn", "connections", "cycle", "flow", "headers", "loop", "timeout_keep_alive", "transport"),
    *("_unset_keepalive_if_required", "handle_events", "on_response_complete"),
}
OF_A_REQUEST = {"body", "message_event", "more_body", "response_complete"}
OF_THE_FLOW = {"pause_reading", "read_paused"}


async def application(scope: object, receive: object, send: object) -> None: ...


@pytest.mark.parametrize(
    ("source", "digest"),
    [
        (H11Protocol, "c2573d455fed4ec2"),
        (RequestResponseCycle, "b9327fce724d5252"),
        (FlowControl, "126debcdaa894c83"),
    ],
)
def test_uvicorns_protocol_is_the_one_that_was_read(source: type, digest: str) -> None:
    """Ours comes between its methods, so it rests on what they do and in which order."""
    assert hashlib.sha256(inspect.getsource(source).encode()).hexdigest()[:16] == digest


def test_uvicorns_protocol_has_what_ours_uses() -> None:
    loop = asyncio.new_event_loop()
    try:
        connection = H11Protocol(uvicorn.Config(application), ServerState(), {}, loop)
        assert set(dir(connection)) >= OF_A_CONNECTION
        flow = FlowControl(asyncio.Transport())
        assert set(dir(flow)) >= OF_THE_FLOW
        request = inspect.signature(RequestResponseCycle)
        made = RequestResponseCycle(**{**dict.fromkeys(request.parameters), "conn": connection.conn})
        assert set(dir(made)) >= OF_A_REQUEST
    finally:
        loop.close()
    assert list(inspect.signature(H11Protocol).parameters) == ["config", "server_state", "app_state", "_loop"]
    # A method of ours that overrides none is never called.
    called = {"buffer_updated", "connection_lost", "connection_made", "data_received", "get_buffer", "handle_events"}
    ours = {name for one in ConnectionLimitsProtocol.__mro__[:2] for name in vars(one)}
    assert called | {"on_response_complete"} <= ours
    theirs = set(dir(H11Protocol)) | set(dir(asyncio.BufferedProtocol))
    assert called | {"on_response_complete"} <= theirs


def test_uvicorns_server_can_be_watched_and_ended() -> None:
    server = uvicorn.Server(uvicorn.Config(application, http=ConnectionLimitsProtocol))
    assert (server.started, server.should_exit, server.config.loaded) == (False, False, False)
    server.config.load()
    assert (server.config.loaded, server.config.ssl) == (True, None)
    assert server.config.http_protocol_class is ConnectionLimitsProtocol


def command_line_of_httpx(program: str) -> str:
    """Whether it is loaded once ``program`` has run, and what it takes along."""
    program = f"import sys; {program}; print(bool(sys.modules.get('httpx._main')), *{{'rich'}} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_httpx_goes_on_without_its_command_line() -> None:
    """And loads it unasked: else there is nothing to keep from it."""
    assert command_line_of_httpx("import amphitrite.schemas, httpx; httpx.Client") == "False"
    assert command_line_of_httpx("import httpx") == "True rich"


def test_fastapi_takes_the_routes_of_a_router_as_they_are() -> None:
    router = APIRouter()
    router.add_api_route("/x", lambda: None)
    assert FastAPI(routes=[*router.routes], openapi_url=None).routes == router.routes


def test_the_client_of_kubernetes_gives_its_answers_unread() -> None:
    parameters = inspect.signature(kubernetes.ApiClient.call_api).parameters
    assert {"_preload_content", "_request_timeout", "_return_http_data_only", "auth_settings"} <= parameters.keys()
    configuration = kubernetes.Configuration()
    assert {"connection_pool_maxsize", "retries"} <= vars(configuration).keys()
    kubernetes.ApiClient(configuration).rest_client.pool_manager.clear()
