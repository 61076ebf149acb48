"""Whatever is shown, by whichever way of writing a path: nothing that steers the model server
reaches it.

The upstreams count: a status alone could hide that a request arrived. A row more is a line more:
``CREDENTIALS`` (what is shown), ``ADMIN`` (what is wanted), ``TRICKS`` (how it is written),
``PSEUDO`` (HTTP/2 alone). Each trick meets each decision about a credential, and each credential
meets the paths as they are.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from ..load.closed_loop import Connection, NotHttp
from .agents import KEY, RunningAgent
from .credentials import CREDENTIALS, DECISIONS, GOOD
from .http2 import Headers, Http2, all_answers
from .rule_table import DOMAIN
from .upstream import Upstream

pytestmark = pytest.mark.serving
Rules = tuple[RunningAgent, dict[str, Upstream]]

#: Triton's HTTP API beyond inference:
#: https://github.com/triton-inference-server/server/tree/main/docs/protocol
ADMIN = (
    ("GET", "v2/repository"),
    ("POST", "v2/repository/index"),
    ("GET", "v2/repository/index"),
    ("POST", "v2/repository/models/m/load"),
    ("POST", "v2/repository/models/m/unload"),
    ("GET", "v2/systemsharedmemory/status"),
    ("POST", "v2/systemsharedmemory/region/r/register"),
    ("POST", "v2/systemsharedmemory/unregister"),
    ("GET", "v2/cudasharedmemory/status"),
    ("POST", "v2/cudasharedmemory/region/r/register"),
    ("POST", "v2/cudasharedmemory/region/r/unregister"),
    ("POST", "v2/trace/setting"),
    ("POST", "v2/models/m/trace/setting"),
    ("POST", "v2/models/m/versions/1/trace/setting"),
    ("POST", "v2/logging"),
)


def _part(path: str) -> str:
    """The first letter of the word after v2, percent-encoded."""
    return path.replace("v2/", f"v2/%{ord(path[3]):02x}", 1).replace(
        f"%{ord(path[3]):02x}{path[3]}", f"%{ord(path[3]):02x}"
    )


#: How ``path`` below ``endpoint`` is written.
TRICKS: dict[str, Callable[[str, str], str]] = {
    "plain": lambda e, p: f"/endpoints/{e}/{p}",
    "dots": lambda e, p: f"/endpoints/{e}/{p.replace('/', '/x/../', 1)}",
    "dots before": lambda e, p: f"/endpoints/{e}/../{e}/{p}",
    "dots above": lambda e, p: f"/endpoints/{e}/../../{p}",
    "encoded dots": lambda e, p: f"/endpoints/{e}/%2e%2e/{e}/{p}",
    "a dot": lambda e, p: f"/endpoints/{e}/./{p.replace('/', '/./')}",
    "two slashes": lambda e, p: f"/endpoints/{e}//{p.replace('/', '//')}",
    "two slashes at first": lambda e, p: f"//endpoints/{e}/{p}",
    "encoded slash": lambda e, p: f"/endpoints/{e}/{p.replace('/', '%2f')}",
    "encoded slash above": lambda e, p: f"/endpoints/{e}/v2/..%2f{p}",
    "encoded letter": lambda e, p: f"/endpoints/{e}/{_part(p)}",
    "encoded twice": lambda e, p: f"/endpoints/{e}/{_part(p).replace('%', '%25')}",
    "backslash": lambda e, p: f"/endpoints/{e}/{p.replace('/', chr(92))}",
    "case": lambda e, p: f"/endpoints/{e}/{p.upper()}",
    "parameter": lambda e, p: f"/endpoints/{e}/{p.replace('/', ';x=y/')}",
    "query": lambda e, p: f"/endpoints/{e}/{p}?x=/v2/models/m/infer",
    "query before": lambda e, p: f"/endpoints/{e}?/{p}/../",
    "slash after": lambda e, p: f"/endpoints/{e}/{p}/",
    "fragment": lambda e, p: f"/endpoints/{e}/{p}#x",
    "outside": lambda e, p: f"/{p}",
    "absolute form": lambda e, p: f"https://127.0.0.1/endpoints/{e}/{p}",
    "absolute form, without an endpoint": lambda e, p: f"http://127.0.0.1/{p}",
}
INFER = "v2/models/m/infer"
PIN = {"azureml-model-deployment": "blue"}
#: Behind a good key these may arrive, as paths that are none of Triton's: it decodes nothing and
#: knows no parameters.
STRANGE = {"encoded twice", "parameter"}


def _request(method: str, path: str, authority: str) -> list[tuple[str, str]]:
    return [(":method", method), (":path", path), (":scheme", "https"), (":authority", authority)]


#: HTTP/2 alone: (method, path of an admin call, a path that is allowed, authority) -> headers.
PSEUDO: dict[str, Callable[[str, str, str, str], Headers]] = {
    "two paths": lambda m, p, ok, a: [*_request(m, ok, a), (":path", p)],
    "two paths, the other first": lambda m, p, ok, a: [(":path", p), *_request(m, ok, a)],
    "path after headers": lambda m, p, ok, a: [*_request(m, ok, a), ("x-a", "b"), (":path", p)],
    "path in upper case": lambda m, p, ok, a: [*_request(m, ok, a), (":PATH", p)],
    "line break in the path": lambda m, p, ok, a: _request(m, f"{ok} HTTP/1.1\r\n\r\n{m} {p}", a),
    "line break in the method": lambda m, p, ok, a: _request(f"{m} {p} HTTP/1.1\r\nx:", ok, a),
    "line break in a header": lambda m, p, ok, a: [*_request(m, ok, a), ("x-a", f"b\r\n\r\n{m} {p} HTTP/1.1\r\n")],
    "another scheme": lambda m, p, ok, a: [(":method", m), (":path", p), (":scheme", "http"), (":authority", a)],
    "path as authority": lambda m, p, ok, a: _request(m, p, f"{a}{p}"),
    "no slash at first": lambda m, p, ok, a: _request(m, p.lstrip("/"), a),
    "absolute form": lambda m, p, ok, a: _request(m, f"https://{a}{p}", a),
    "connect": lambda m, p, ok, a: [(":method", "CONNECT"), (":authority", a), (":protocol", "websocket"),
                                    (":scheme", "https"), (":path", p)],
    "upgrade": lambda m, p, ok, a: [*_request(m, ok, a), ("upgrade", "h2c"), ("connection", "upgrade")],
    "rewritten": lambda m, p, ok, a: [*_request(m, f"{p}", a), ("x-envoy-original-path", ok), ("x-rewrite-url", ok)],
}  # fmt: skip


#: Method and path below an endpoint's address, and the status of each.
Asks = Callable[[RunningAgent, str, Sequence[tuple[str, str]], Mapping[str, str]], list[int]]


def http1(agent: RunningAgent, _: str, asked: Sequence[tuple[str, str]], headers: Mapping[str, str]) -> list[int]:
    """By HTTP/1.1, on one connection as long as that is kept; 0: no answer."""
    context = ssl.create_default_context(cafile=str(agent.certificate))
    kept: list[Connection] = []
    statuses = []
    for method, path in asked:
        lines = [f"{method} {path} HTTP/1.1", f"host: 127.0.0.1:{agent.port}", "content-length: 0"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if not kept:
            kept.append(Connection("127.0.0.1", agent.port, context, 10))
        try:
            answer = kept[0].exchange("\r\n".join([*lines, "", ""]).encode())
            status, close = answer.status, answer.close
        except (OSError, NotHttp):
            status, close = 0, True
        if close:
            kept.pop().close()
        statuses.append(status)
    for connection in kept:
        connection.close()
    return statuses


def http2(
    agent: RunningAgent, _: str, asked: Sequence[tuple[str, str]], headers: Mapping[str, str], name: str | None = None
) -> list[int]:
    """The same by HTTP/2, many at once. ``name``: the host, where that is not its address."""
    authority = f"{name or '127.0.0.1'}:{agent.port}"
    more = [("content-length", "0"), *headers.items()]
    requests = [[*_request(method, path, authority), *more] for method, path in asked]
    return [int(answer.get(":status", "0")) for answer in all_answers("127.0.0.1", agent.port, requests, name=name)]


def by_host(
    agent: RunningAgent, endpoint: str, asked: Sequence[tuple[str, str]], headers: Mapping[str, str]
) -> list[int]:
    """The same at the endpoint's own host, below which there are no endpoints."""
    moved = [(method, path.removeprefix(f"/endpoints/{endpoint}")) for method, path in asked]
    return http2(agent, endpoint, moved, headers, f"{endpoint}.{DOMAIN}")


WAYS: dict[str, Asks] = {"HTTP/1.1": http1, "HTTP/2": http2, "by host": by_host}
#: No path below an endpoint, so at its host a path that is none of Triton's, or what only HTTP/1.1
#: can say.
ELSEWHERE = {
    "HTTP/1.1": set[str](),
    "HTTP/2": {"absolute form", "absolute form, without an endpoint"},
    "by host": {
        *("dots before", "dots above", "encoded dots", "two slashes at first", "query before"),
        *("absolute form", "absolute form, without an endpoint"),
    },
}


def shown_by(shown: str) -> tuple[str, dict[str, str]]:
    """The endpoint that is asked, and the headers."""
    endpoint, credential = CREDENTIALS[shown]
    authorization = credential()
    return endpoint, {} if authorization is None else {"authorization": authorization}


def arrived(rules: Rules) -> list[str]:
    return [r["path"] for upstream in rules[1].values() for r in upstream.scored()]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shown", DECISIONS)
def test_no_path_leads_to_the_model_server(shown: str, way: str, scoring: RunningAgent, rules: Rules) -> None:
    endpoint, headers = shown_by(shown)
    rows = {
        (trick, method, path): (method, write(endpoint, path))
        for trick, write in TRICKS.items()
        if not (shown in GOOD and trick in STRANGE) and trick not in ELSEWHERE[way]
        for method, path in ADMIN
    }
    statuses = dict(zip(rows, WAYS[way](scoring, endpoint, list(rows.values()), headers), strict=True))
    assert {row: status for row, status in statuses.items() if status not in (400, 401, 403, 404)} == {}
    assert arrived(rules) == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shown", CREDENTIALS)
def test_only_what_is_good_is_let_in(shown: str, way: str, scoring: RunningAgent, rules: Rules) -> None:
    endpoint, headers = shown_by(shown)
    rows = [(method, TRICKS["plain"](endpoint, path)) for method, path in (*ADMIN, ("POST", INFER))]
    *admin, infer = WAYS[way](scoring, endpoint, rows, {**headers, **PIN})
    good = shown in GOOD
    assert (set(admin), infer) == (({403}, 200) if good else ({401}, 401))
    assert arrived(rules) == ([f"/{INFER}"] if good else [])


@pytest.mark.parametrize("trick", sorted(STRANGE))
def test_what_arrives_in_a_strange_form_is_not_tidied_up(trick: str, scoring: RunningAgent, rules: Rules) -> None:
    rows = [(method, TRICKS[trick]("images", path)) for method, path in ADMIN]
    # What is pinned is not copied: a copy could arrive during the next test.
    http1(scoring, "images", rows, {"authorization": f"Bearer {KEY}", **PIN})
    seen = set(arrived(rules))
    assert seen
    assert {path for path in seen if "%25" not in path and not path.startswith("/v2;")} == set()


@pytest.mark.parametrize("shown", ["none", "key"])
def test_pseudo_headers(shown: str, scoring: RunningAgent, rules: Rules) -> None:
    endpoint, authorization = shown_by(shown)
    method, path = "POST", "v2/repository/index"
    allowed = f"/endpoints/{endpoint}/{INFER}"

    def ask(make: Callable[[str, str, str, str], Headers]) -> int:
        with Http2("127.0.0.1", scoring.port) as connection:
            headers = make(method, f"/endpoints/{endpoint}/{path}", allowed, connection.authority)
            return connection.asked([*headers, *authorization.items()])

    # At once: before Envoy ends a connection that speaks no HTTP/2 it waits for a second.
    with ThreadPoolExecutor(len(PSEUDO)) as pool:
        statuses = dict(zip(PSEUDO, pool.map(ask, PSEUDO.values()), strict=True))
    assert {name: status for name, status in statuses.items() if status not in (0, 400, 401, 403, 404)} == {}
    assert arrived(rules) == []
