"""Each client and each thing that it can ask, against a running product. ``docs/clients.md`` has
the table of what has passed; ``pytest --update-golden`` rewrites it."""

from __future__ import annotations

import sys
from importlib.metadata import version

import pytest

from . import page, perf_analyzer, plain, plain_asks, programs, triton, triton_asks
from .served import SIMPLE, Served

pytestmark = pytest.mark.serving

PLAIN = [(client, what) for client in plain.CLIENTS for what in plain_asks.ASKS]
TRITON = [
    (client, what)
    for client, kind in triton.CLIENTS.items()
    for what in triton_asks.ASKS
    if what not in triton_asks.ABSENT[kind.protocol]
]
MEASURING = [(client, "binary") for client in perf_analyzer.CLIENTS]
#: client -> what has passed in this run, and the client's version.
PASSED: dict[str, set[str]] = {}
VERSIONS: dict[str, str] = {}


def passed(client: str, what: str, number: str) -> None:
    PASSED.setdefault(client, set()).add(what)
    VERSIONS[client] = number


@pytest.mark.parametrize(("client", "what"), TRITON)
def test_triton_s_clients(served: Served, client: str, what: str) -> None:
    triton_asks.ASKS[what](triton.CLIENTS[client](served))
    passed(client, what, version("tritonclient"))


@pytest.mark.parametrize(("client", "what"), PLAIN)
def test_clients_that_know_http(served: Served, client: str, what: str) -> None:
    ask, number = plain.CLIENTS[client]
    plain_asks.ASKS[what](ask, served)
    passed(client, what, number())


@pytest.mark.parametrize(("client", "what"), MEASURING)
def test_perf_analyzer(served: Served, client: str, what: str) -> None:
    assert "throughput:" in perf_analyzer.measure(served, client)
    passed(client, what, programs.version("perf_analyzer", "--version"))


#: After ``ml server env`` nobody is told whom to trust.
IN_NODE = """
const headers = { Authorization: `Bearer ${process.env.KEY}` };
fetch(process.env.URL, { headers }).then((found) => process.exit(found.status === 200 ? 0 : 1));
"""
IN_PYTHON = """
import asyncio, http.client, os
import aiohttp, httpx, requests, urllib3
import tritonclient.http, tritonclient.http.aio, tritonclient.grpc

url, headers = os.environ["URL"], {"Authorization": f"Bearer {os.environ['KEY']}"}
address = url[len("https://"):].split("/v2/")[0]
assert requests.get(url, headers=headers).ok
assert httpx.get(url, headers=headers).is_success
with urllib3.PoolManager() as pool:
    assert pool.request("GET", url, headers=headers).status == 200
connection = http.client.HTTPSConnection(address.split("/")[0])
connection.request("GET", "/" + url.split("/", 3)[3], headers=headers)
assert connection.getresponse().status == 200
assert tritonclient.http.InferenceServerClient(address, ssl=True).is_server_ready(headers=headers)

async def ask():
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as found:
        assert found.status == 200
    async with tritonclient.http.aio.InferenceServerClient(address, ssl=True) as client:
        assert await client.is_server_ready(headers=headers)

asyncio.run(ask())
metadata = {"authorization": headers["Authorization"], "amphitrite-endpoint": address.split("/")[2]}
assert tritonclient.grpc.InferenceServerClient(address.split("/")[0], ssl=True).is_server_ready(headers=metadata)
"""


@pytest.mark.parametrize(
    "command",
    [
        ("sh", "-c", 'curl --silent --show-error --fail -H "Authorization: Bearer $KEY" "$URL"'),
        ("node", "-e", IN_NODE),
        (sys.executable, "-c", IN_PYTHON),
    ],
    ids=["curl", "Node.js", "Python"],
)
def test_after_server_env_no_client_is_told_whom_to_trust(served: Served, command: tuple[str, ...]) -> None:
    url, key = f"{served.uri()}v2/health/ready", served.keys[SIMPLE]
    done = served.program(programs.found(command[0]), *command[1:], URL=url, KEY=key)
    assert done.returncode == 0, done.stderr


def test_the_page_says_what_has_passed(request: pytest.FixtureRequest) -> None:
    """A client that is not installed here keeps its row."""
    wanted: dict[str, set[str]] = {}
    for client, what in (*TRITON, *MEASURING, *PLAIN):
        wanted.setdefault(client, set()).add(what)
    incomplete = [client for client, whats in PASSED.items() if whats != wanted[client]]
    if incomplete or not PASSED:
        pytest.skip(f"not all of them were run, or have passed: {', '.join(incomplete) or 'none'}")
    asked = tuple(plain_asks.ASKS)
    rows = [page.row(client, VERSIONS[client], PASSED[client], asked) for client in PASSED]
    table = page.merge("clients", ("client", "version", *asked), rows, list(wanted))
    page.compare("clients", table, request, versions=False)
