"""As ``test_nobody_gets_in``, by gRPC: whatever is shown, however a method is written and an
endpoint is named, no call that steers or reveals the model server reaches it. A row more is a line
more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from .agents import KEY, RunningAgent
from .credentials import CREDENTIALS, DECISIONS, GOOD
from .grpc_upstream import SERVICE, GrpcUpstream
from .http2 import Http2, all_answers
from .rule_table import DOMAIN
from .upstream import Upstream

pytestmark = pytest.mark.serving
Rules = tuple[RunningAgent, dict[str, Upstream]]
ByGrpc = dict[str, GrpcUpstream]

#: All of Triton's service but inference, what tells of services, and what nobody has.
ADMIN = (
    *(f"{SERVICE}/Repository{verb}" for verb in ("Index", "ModelLoad", "ModelUnload")),
    *(f"{SERVICE}/SystemSharedMemory{verb}" for verb in ("Status", "Register", "Unregister")),
    *(f"{SERVICE}/CudaSharedMemory{verb}" for verb in ("Status", "Register", "Unregister")),
    *(f"{SERVICE}/{name}" for name in ("TraceSetting", "LogSettings", "Other", "")),
    *(f"grpc.reflection.{version}.ServerReflection/ServerReflectionInfo" for version in ("v1", "v1alpha")),
    "other.Service/ModelInfer",
)  # fmt: skip

#: How ``path``, service and method of ``endpoint``, is written.
TRICKS: dict[str, Callable[[str, str], str]] = {
    "plain": lambda e, p: f"/{p}",
    "two slashes": lambda e, p: f"/{p.replace('/', '//')}",
    "two slashes at first": lambda e, p: f"//{p}",
    "encoded slash": lambda e, p: f"/{p.replace('/', '%2f')}",
    "encoded slash at first": lambda e, p: f"/%2f{p}",
    "encoded letter": lambda e, p: f"/{_encoded(p)}",
    "encoded twice": lambda e, p: f"/{_encoded(p).replace('%', '%25')}",
    "dots": lambda e, p: f"/{p.replace('/', '/x/../')}",
    "a dot": lambda e, p: f"/./{p.replace('/', '/./')}",
    "dots after what is allowed": lambda e, p: f"/{SERVICE}/ModelInfer/../../{p}",
    "encoded dots after what is allowed": lambda e, p: f"/{SERVICE}/ModelInfer/%2e%2e/%2e%2e/{p}",
    "after what is allowed": lambda e, p: f"/{SERVICE}/ModelInfer/{p}",
    "case": lambda e, p: f"/{p.upper()}",
    "slash after": lambda e, p: f"/{p}/",
    "query": lambda e, p: f"/{p}?/{SERVICE}/ModelInfer",
    "fragment": lambda e, p: f"/{p}#/{SERVICE}/ModelInfer",
    "parameter": lambda e, p: f"/{p};x=y",
    "backslash": lambda e, p: f"/{p.replace('/', chr(92))}",
    "below the endpoint": lambda e, p: f"/endpoints/{e}/{p}",
}

#: No HTTP/2 at all: Envoy ends the connection, which it takes a second for, or the call.
NO_PATHS = (ADMIN[0], f"https://127.0.0.1/{ADMIN[0]}")

#: What says that a request is one in gRPC, nearly says so, or does not.
CONTENTS = (
    *("application/grpc", "application/grpc+proto", "application/grpc+json", "application/grpc;x=y"),
    *("APPLICATION/GRPC", "application/grpc-web", "application/grpc-web+proto", "application/grpc-web-text"),
    *("application/grpcx", "application/x-protobuf", "application/json", ""),
)  # fmt: skip

PIN = "azureml-model-deployment"
#: An empty message.
BODY = b"\0\0\0\0\0"
#: In HTTP, and in gRPC: invalid argument, not found, permission denied, unimplemented,
#: unauthenticated.
REFUSED = {"400", "401", "403", "404"}
REFUSED_BY_GRPC = {"3", "5", "7", "12", "16"}


def _encoded(path: str) -> str:
    """The first letter of the method, percent-encoded."""
    service, _, method = path.partition("/")
    return f"{service}/%{ord(method[0]):02x}{method[1:]}" if method else f"%{ord(path[0]):02x}{path[1:]}"


def refused(answer: Mapping[str, str]) -> bool:
    if "grpc-status" in answer:
        return answer["grpc-status"] in REFUSED_BY_GRPC
    return answer.get(":status") in REFUSED


def asked(
    agent: RunningAgent,
    endpoint: str,
    authorization: str | None,
    rows: Mapping[str, tuple[str, str]],
    by_host: bool,
    *pin: tuple[str, str],
) -> dict[str, dict[str, str]]:
    """The answer to each of ``rows``: path and content type."""
    name = f"{endpoint}.{DOMAIN}" if by_host else None
    headers = [(":method", "POST"), (":scheme", "https"), (":authority", f"{name or '127.0.0.1'}:{agent.port}")]
    more = [("te", "trailers")] if by_host else [("te", "trailers"), ("amphitrite-endpoint", endpoint)]
    more += [*pin, *([] if authorization is None else [("authorization", authorization)])]
    requests = [
        [*headers, (":path", path), *more, *([("content-type", content)] if content else [])]
        for path, content in rows.values()
    ]
    return dict(zip(rows, all_answers("127.0.0.1", agent.port, requests, BODY, name), strict=True))


def arrived(rules: Rules, by_grpc: ByGrpc) -> list[str]:
    called = [method for upstream in by_grpc.values() for method in upstream.called]
    return called + [r["path"] for upstream in rules[1].values() for r in upstream.scored()]


@pytest.fixture(autouse=True)
def nothing_yet(scoring: RunningAgent, by_grpc: ByGrpc) -> None:
    for upstream in by_grpc.values():
        upstream.called.clear()


@pytest.mark.parametrize("by_host", [False, True], ids=["by metadata", "by host"])
@pytest.mark.parametrize("shown", DECISIONS)
def test_no_call_steers_the_model_server(
    shown: str, by_host: bool, scoring: RunningAgent, rules: Rules, by_grpc: ByGrpc
) -> None:
    endpoint, credential = CREDENTIALS[shown]
    rows = {
        f"{trick} {path}": (write(endpoint, path), "application/grpc")
        for trick, write in TRICKS.items()
        for path in ADMIN
    }
    answers = asked(scoring, endpoint, credential(), rows, by_host)
    assert {row: answer for row, answer in answers.items() if not refused(answer)} == {}
    assert arrived(rules, by_grpc) == []


@pytest.mark.parametrize("by_host", [False, True], ids=["by metadata", "by host"])
@pytest.mark.parametrize("shown", CREDENTIALS)
def test_only_what_is_good_is_let_in(
    shown: str, by_host: bool, scoring: RunningAgent, rules: Rules, by_grpc: ByGrpc
) -> None:
    endpoint, credential = CREDENTIALS[shown]
    infer = f"/{SERVICE}/ModelInfer"
    rows = {path: (f"/{path}", "application/grpc") for path in ADMIN}
    # What is pinned is not copied.
    answers = asked(
        scoring, endpoint, credential(), {**rows, infer: (infer, "application/grpc")}, by_host, (PIN, "blue")
    )
    good = answers.pop(infer)
    assert {row: answer for row, answer in answers.items() if not refused(answer)} == {}
    assert good["grpc-status"] == ("0" if shown in GOOD else "16")
    assert arrived(rules, by_grpc) == ([infer] if shown in GOOD else [])


@pytest.mark.parametrize("by_host", [False, True], ids=["by metadata", "by host"])
@pytest.mark.parametrize("shown", ["none", "key"])
def test_by_whatever_it_calls_itself(
    shown: str, by_host: bool, scoring: RunningAgent, rules: Rules, by_grpc: ByGrpc
) -> None:
    rows = {f"{content} {path}": (f"/{path}", content) for content in CONTENTS for path in ADMIN}
    authorization = f"Bearer {KEY}" if shown == "key" else None
    answers = asked(scoring, "images", authorization, rows, by_host)
    assert [method for upstream in by_grpc.values() for method in upstream.called] == []
    if by_host and shown == "key":
        # What does not call itself gRPC is a request by HTTP, for a path that Triton does not have.
        answers = {row: answer for row, answer in answers.items() if answer.get("content-type") != "application/json"}
        assert answers
    else:
        assert arrived(rules, by_grpc) == []
    assert {row: answer for row, answer in answers.items() if not refused(answer)} == {}


def test_what_is_no_path_is_nobody_s(scoring: RunningAgent, rules: Rules, by_grpc: ByGrpc) -> None:
    def ask(path: str) -> dict[str, str]:
        with Http2("127.0.0.1", scoring.port) as connection:
            more = [(":authority", connection.authority), ("amphitrite-endpoint", "images"), ("te", "trailers")]
            shown = [("content-type", "application/grpc"), ("authorization", f"Bearer {KEY}")]
            request = [(":method", "POST"), (":scheme", "https"), (":path", path), *more, *shown]
            return connection.answers([request], BODY)[0]

    with ThreadPoolExecutor(len(NO_PATHS)) as pool:
        answers = list(pool.map(ask, NO_PATHS))
    assert [answer for answer in answers if answer and not refused(answer)] == []
    assert arrived(rules, by_grpc) == []
