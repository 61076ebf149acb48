"""Requests of one sequence stay on one instance, whichever way they say so. Real Envoy."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amphitrite.dataplane.envoy.sequences import HELD_BYTES
from amphitrite.dataplane.routing import Cluster, RoutingTable

from .agents import BEARER, INFER, RunningAgent, cluster, table
from .minting import ISSUERS, mint
from .upstream import Upstream

pytestmark = pytest.mark.serving

SEQUENCES = range(1, 21)


def remembering(found: RoutingTable) -> RoutingTable:
    clusters: tuple[Cluster, ...] = tuple(replace(c, sequences=True) for c in found.clusters)
    routes = tuple(replace(r, targets=tuple(replace(t, sequences=True) for t in r.targets)) for r in found.routes)
    return replace(found, clusters=clusters, routes=routes)


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory, certificate: tuple[Path, Path]
) -> Iterator[tuple[RunningAgent, list[Upstream]]]:
    with ExitStack() as stack:
        upstreams = [stack.enter_context(Upstream(f"u{n}")) for n in range(3)]
        agent = RunningAgent(tmp_path_factory.mktemp("agent"), *certificate)
        stack.callback(agent.close)
        agent.start()
        found = remembering(table(1, [cluster("c0", upstreams)], [("c0", 100)]))
        tokens = replace(found.routes[0], name="tokens", auth="aml_token", credentials=())
        agent.put_in_force(replace(found, routes=(*found.routes, tokens), issuers=ISSUERS))
        yield agent, upstreams


def plain(sequence: Any) -> dict[str, Any]:
    """As tritonclient writes it: the parameters come last."""
    body = {"inputs": [{"name": "x", "data": [1.5] * 500}], "parameters": {"sequence_id": sequence, "priority": 0}}
    return {"content": json.dumps(body)}


def binary(sequence: Any) -> dict[str, Any]:
    text = plain(sequence)["content"]
    # Behind the JSON stand numbers, which may look like anything.
    content = text.encode() + b'"sequence_id": 77' + bytes(range(256)) * 64
    return {"content": content, "headers": {"inference-header-content-length": str(len(text))}}


def named(sequence: Any) -> dict[str, Any]:
    return {
        "content": gzip.compress(b"{}"),
        "headers": {"amphitrite-sequence": str(sequence), "content-encoding": "gzip"},
    }


@pytest.mark.parametrize("say", [plain, binary, named], ids=lambda say: str(say.__name__))
@pytest.mark.parametrize("kind", [int, lambda n: f"corr-{n}"], ids=["number", "text"])
def test_one_sequence_one_instance(running: tuple[RunningAgent, list[Upstream]], say: Any, kind: Any) -> None:
    agent, upstreams = running
    served: dict[int, set[str]] = {n: set() for n in SEQUENCES}
    for _ in range(4):
        for number in SEQUENCES:
            for upstream in upstreams:
                upstream.requests.clear()
            request = say(kind(number))
            headers = {**BEARER, **request.pop("headers", {})}
            assert agent.client.post(INFER, headers=headers, **request).status_code == 200
            served[number] |= {u.name for u in upstreams if u.scored()}
    assert all(len(names) == 1 for names in served.values())
    assert len(set.union(*served.values())) == 3, "they are spread"


@pytest.mark.parametrize("nobody", [0, ""], ids=["zero", "empty"])
def test_requests_of_no_sequence_go_anywhere(running: tuple[RunningAgent, list[Upstream]], nobody: Any) -> None:
    agent, upstreams = running
    for upstream in upstreams:
        upstream.requests.clear()
    for _ in range(60):
        assert agent.client.post(INFER, headers=BEARER, **plain(nobody)).status_code == 200
    assert all(u.scored() for u in upstreams)


def test_a_compressed_body_that_says_nothing_is_refused(running: tuple[RunningAgent, list[Upstream]]) -> None:
    headers = {**BEARER, "content-encoding": "gzip", "x-ms-client-request-id": "mine"}
    answer = running[0].client.post(INFER, headers=headers, content=gzip.compress(b"{}"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "UnsupportedMediaType")
    assert "amphitrite-sequence" in answer.json()["error"]["message"]
    assert answer.headers["x-ms-client-request-id"] == "mine"
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        pytest.param(INFER, BEARER, id="key"),
        pytest.param(INFER.replace("images", "tokens"), {"authorization": f"Bearer {mint()}"}, id="token"),
    ],
)
def test_large_bodies_pass_and_too_large_ones_are_told(
    running: tuple[RunningAgent, list[Upstream]], path: str, headers: dict[str, str]
) -> None:
    agent, _ = running
    assert agent.client.post(path, headers=headers, content=b"x" * 15_000_000).status_code == 200
    answer = agent.client.post(path, headers=headers, content=b"x" * 18_000_000)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "RequestTooLarge")
    assert "amphitrite-sequence" in answer.json()["error"]["message"]
    assert f"more than {HELD_BYTES} bytes (this one has 18000000)" in answer.json()["error"]["message"]
