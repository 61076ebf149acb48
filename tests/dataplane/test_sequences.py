"""Requests of one sequence stay on one instance, whichever way they say so. Real Envoy."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from tritonclient.grpc import service_pb2

from amphitrite.dataplane.envoy.filters.sequence_affinity import BUFFERED_BYTES
from amphitrite.dataplane.table.routing_table import Address, Cluster, RoutingTable

from .agents import BEARER, INFER, RunningAgent, cluster, table
from .grpc_upstream import SERVICE, GrpcUpstream
from .minting import ISSUERS, mint
from .refusals import code_and_message
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
        by_grpc = [stack.enter_context(GrpcUpstream(one.name)) for one in upstreams]
        addresses = (Address("127.0.0.1", *(one.port for one in pair)) for pair in zip(upstreams, by_grpc, strict=True))
        found = replace(cluster("c0", upstreams), addresses=tuple(sorted(addresses)))
        found = remembering(table(1, [found], [("c0", 100)]))
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
    assert (answer.status_code, code_and_message(answer)[0]) == (415, "UnsupportedMediaType")
    assert "amphitrite-sequence" in code_and_message(answer)[1]
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
    assert (answer.status_code, code_and_message(answer)[0]) == (413, "RequestTooLarge")
    assert "amphitrite-sequence" in code_and_message(answer)[1]
    assert f"more than {BUFFERED_BYTES} bytes (this one has 18000000)" in code_and_message(answer)[1]


# -- gRPC ------------------------------------------------------------------------------------------
def called(
    agent: RunningAgent, request: service_pb2.ModelInferRequest, endpoint: str = "images", **options: Any
) -> grpc.Call:
    """Which upstream answered, or the status."""
    shown = BEARER["authorization"] if endpoint == "images" else f"Bearer {mint()}"
    metadata = {"amphitrite-endpoint": endpoint, "authorization": shown, **options.pop("metadata", {})}
    trust = grpc.ssl_channel_credentials(agent.certificate.read_bytes())
    unbounded = [("grpc.max_send_message_length", -1)]
    with grpc.secure_channel(f"127.0.0.1:{agent.port}", trust, unbounded) as channel:
        call = channel.unary_unary(f"/{SERVICE}/ModelInfer", lambda message: message.SerializeToString())
        try:
            answer = call(request, metadata=tuple(metadata.items()), timeout=20, **options)
        except grpc.RpcError as error:
            return error.code().name, error.details()
        return json.loads(answer)["upstream"]


def message(sequence: int | str | None, size: int = 100) -> service_pb2.ModelInferRequest:
    """As tritonclient makes it."""
    made = service_pb2.ModelInferRequest(model_name="m", id="sequence_id", raw_input_contents=[b'"\x0b' * (size // 2)])
    made.parameters["priority"].uint64_param = 2**63
    made.parameters["sequence_start"].bool_param = True
    if isinstance(sequence, int):
        made.parameters["sequence_id"].int64_param = sequence
    elif sequence is not None:
        made.parameters["sequence_id"].string_param = sequence
    made.inputs.add(name="x", datatype="BYTES", shape=[1]).parameters["sequence_id"].int64_param = 77
    return made


@pytest.mark.parametrize("endpoint", ["images", "tokens"])
@pytest.mark.parametrize("kind", [int, lambda n: f"a sequence {n}, corr"], ids=["number", "text"])
def test_one_sequence_one_instance_by_grpc(
    running: tuple[RunningAgent, list[Upstream]], kind: Any, endpoint: str
) -> None:
    agent, _ = running
    served = {n: {called(agent, message(kind(n)), endpoint) for _ in range(3)} for n in SEQUENCES}
    assert {len(names) for names in served.values()} == {1}
    assert len(set.union(*served.values())) == 3, "they are spread"


@pytest.mark.parametrize("nobody", [None, 0, ""])
def test_calls_of_no_sequence_go_anywhere(running: tuple[RunningAgent, list[Upstream]], nobody: Any) -> None:
    assert len({called(running[0], message(nobody)) for _ in range(40)}) == 3


NAMED = {"amphitrite-sequence": "mine"}


def test_what_is_not_searched_is_told_and_passes_with_its_name(running: tuple[RunningAgent, list[Upstream]]) -> None:
    agent, _ = running
    large, larger = message(5, 15_000_000), message(5, 18_000_000)
    assert called(agent, large) == called(agent, message(5))
    assert called(agent, large, "tokens") == called(agent, message(5), "tokens")
    status, says = called(agent, larger)
    assert status == "RESOURCE_EXHAUSTED" and str(BUFFERED_BYTES) in says and "amphitrite-sequence" in says
    status, says = called(agent, message(5, 10_000), compression=grpc.Compression.Gzip)
    assert status == "UNIMPLEMENTED" and "compressed" in says and "amphitrite-sequence" in says
    passed = [
        called(agent, larger, metadata=NAMED),
        called(agent, message(5, 10_000), metadata=NAMED, compression=grpc.Compression.Gzip),
    ]
    assert passed == [called(agent, message(None), metadata=NAMED)] * 2
