"""Clients that know HTTP and nothing of Triton, one function each.

Decides how each is told a request, its trust and its patience. Must not know what is asked.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import ssl
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx
import requests
import urllib3

from . import event_loop, programs

PATIENT_S = 60.0


@dataclass(frozen=True)
class Request:
    """``trust``: a file with certificate authorities. ``timeout_s``: how long the client waits for
    the answer."""

    method: str
    url: str
    trust: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    timeout_s: float = PATIENT_S


@dataclass(frozen=True)
class Answer:
    """``headers``: names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


#: Raises TimeoutError where the client has waited long enough, pytest.skip without the program.
Ask = Callable[[Request], Answer]


def _answer(status: int, headers: Any, body: bytes) -> Answer:
    return Answer(status, {name.lower(): value for name, value in headers}, body)


def _context(request: Request) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=request.trust)


def by_requests(request: Request) -> Answer:
    try:
        found = requests.request(
            request.method, request.url, headers=request.headers, data=request.body, verify=request.trust,
            timeout=request.timeout_s,
        )  # fmt: skip
    except requests.Timeout as exc:
        raise TimeoutError from exc
    return _answer(found.status_code, found.headers.items(), found.content)


def by_httpx(request: Request) -> Answer:
    try:
        with httpx.Client(verify=_context(request), trust_env=False) as client:
            found = client.request(
                request.method, request.url, headers=request.headers, content=request.body, timeout=request.timeout_s
            )
    except httpx.TimeoutException as exc:
        raise TimeoutError from exc
    return _answer(found.status_code, found.headers.items(), found.content)


def by_aiohttp(request: Request) -> Answer:
    async def ask() -> Answer:
        connector = aiohttp.TCPConnector(ssl=_context(request))
        timeout = aiohttp.ClientTimeout(total=request.timeout_s)
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
            session.request(request.method, request.url, headers=request.headers, data=request.body) as found,
        ):
            return _answer(found.status, found.headers.items(), await found.read())

    try:
        return event_loop.run(ask())
    except asyncio.TimeoutError as exc:  # On Python 3.10 it is no TimeoutError.
        raise TimeoutError from exc


def by_urllib3(request: Request) -> Answer:
    try:
        with urllib3.PoolManager(ca_certs=request.trust, retries=False) as pool:
            found = pool.request(
                request.method, request.url, headers=request.headers, body=request.body, timeout=request.timeout_s
            )
    except urllib3.exceptions.TimeoutError as exc:
        raise TimeoutError from exc
    return _answer(found.status, found.headers.items(), found.data)


def by_http_client(request: Request) -> Answer:
    address = urlsplit(request.url)
    connection = http.client.HTTPSConnection(address.netloc, context=_context(request), timeout=request.timeout_s)
    try:
        connection.request(request.method, address.path, body=request.body, headers=request.headers)
        found = connection.getresponse()
        return _answer(found.status, found.getheaders(), found.read())
    finally:
        connection.close()


def by_curl(request: Request) -> Answer:
    with tempfile.TemporaryDirectory(prefix="curl-") as directory:
        sent, head, body = (Path(directory, name) for name in ("sent", "head", "body"))
        command = [programs.found("curl"), "--silent", "--show-error", "--cacert", request.trust, "-X", request.method]
        command += ["--max-time", str(request.timeout_s), "--dump-header", str(head), "--output", str(body)]
        for name, value in request.headers.items():
            command += ["--header", f"{name}: {value}"]
        if request.body is not None:
            sent.write_bytes(request.body)
            command += ["--data-binary", f"@{sent}"]
        done = subprocess.run([*command, request.url], capture_output=True, text=True, check=False)
        if done.returncode == 28:
            raise TimeoutError(done.stderr)
        assert done.returncode == 0, done.stderr
        first, *lines = head.read_text().strip().splitlines()
        headers = (line.partition(":") for line in lines)
        return _answer(int(first.split()[1]), ((name, value.strip()) for name, _, value in headers), body.read_bytes())


def _by_program(talk: Callable[[str, str], str], client: str) -> Ask:
    """A client in another language: one line in, one line out."""

    def ask(request: Request) -> Answer:
        document = {
            "client": client,
            "method": request.method,
            "url": request.url,
            "headers": request.headers,
            "body": None if request.body is None else base64.b64encode(request.body).decode(),
            "timeout_ms": round(request.timeout_s * 1000),
        }
        found = json.loads(talk(request.trust, json.dumps(document)))
        if found.get("late"):
            raise TimeoutError
        assert "error" not in found, found
        return _answer(found["status"], found["headers"].items(), base64.b64decode(found["body"]))

    return ask


def _package(name: str) -> Callable[[], str]:
    return lambda: version(name)


#: Its name on the page -> how to ask, and which version it has here.
CLIENTS: dict[str, tuple[Ask, Callable[[], str]]] = {
    "curl": (by_curl, lambda: programs.version("curl", "--version")),
    "requests": (by_requests, _package("requests")),
    "httpx": (by_httpx, _package("httpx")),
    "aiohttp": (by_aiohttp, _package("aiohttp")),
    "urllib3": (by_urllib3, _package("urllib3")),
    "Python's http.client": (by_http_client, lambda: ".".join(__import__("platform").python_version_tuple())),
    "Node.js, fetch": (_by_program(programs.node, "fetch"), lambda: programs.version("node", "--version")),
    "Node.js, https": (_by_program(programs.node, "https"), lambda: programs.version("node", "--version")),
    "Node.js, http2": (_by_program(programs.node, "http2"), lambda: programs.version("node", "--version")),
    "Go, net/http": (_by_program(programs.go, "net/http"), lambda: programs.version("go", "version")),
}
