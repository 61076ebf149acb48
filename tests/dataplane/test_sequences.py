"""Requests of one sequence stay on one instance, whichever way they say so. Real Envoy."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import h2.events
import pytest
from google.protobuf.message import DecodeError
from tritonclient.grpc import service_pb2

from amphitrite.dataplane.envoy.filters.sequence_affinity import BUFFERED_BYTES, TEXT_ID_BYTES_MAX
from amphitrite.dataplane.envoy.filters.sequence_messages import FIELDS_MAX
from amphitrite.dataplane.envoy.filters.sequence_texts import NAMES_MAX
from amphitrite.dataplane.table.routing_table import Address, Cluster, RoutingTable

from .agents import BEARER, INFER, RunningAgent, cluster, table
from .grpc_upstream import SERVICE, GrpcUpstream
from .http2 import Http2
from .minting import ISSUERS, mint
from .refusals import code_and_message
from .upstream import Upstream

pytestmark = pytest.mark.serving

SEQUENCES = range(1, 21)
NAMED = {"amphitrite-sequence": "mine"}
#: A text is read in pieces of this size.
NAMES_AT = 64 * 1024


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
        [target] = found.routes[0].targets
        numbers = replace(found.routes[0], name="numbers", targets=(replace(target, number_ids=True),))
        agent.put_in_force(replace(found, routes=(found.routes[0], numbers, tokens), issuers=ISSUERS))
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


# -- hostile bodies --------------------------------------------------------------------------------
NUMBERS = INFER.replace("images", "numbers")
SHORT, LONG = "i" * TEXT_ID_BYTES_MAX, "i" * (TEXT_ID_BYTES_MAX + 1)


def asked(agent: RunningAgent, path: str, **request: Any) -> tuple[int, str]:
    """The status, and the message of a refusal."""
    headers = {**BEARER, **request.pop("headers", {})}
    answer = agent.client.post(path, headers=headers, **request)
    return answer.status_code, "" if answer.status_code == 200 else code_and_message(answer)[1]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        pytest.param(b'{"sequence_id"' * NAMES_MAX, 200, id="many"),
        pytest.param(b'{"sequence_id"' * (NAMES_MAX + 1), 400, id="too many"),
        pytest.param(b'{"sequence_id"}' * 1_000_000, 400, id="a million"),
        pytest.param(b'{"sequence_id"' + b" " * 10_000_000, 400, id="a long gap"),
        pytest.param(b'{"sequence_id":' + b" " * 10_000_000 + b"5}", 400, id="a long gap before the value"),
        pytest.param(b'{"sequence_i"}' * 1_000_000, 200, id="nearly the name"),
    ],
)
def test_no_text_is_searched_for_long(running: tuple[RunningAgent, list[Upstream]], body: bytes, told: int) -> None:
    status, says = asked(running[0], INFER, content=body)
    assert status == told and (status == 200 or "in the header amphitrite-sequence" in says)
    assert asked(running[0], INFER, content=body, headers=NAMED)[0] == 200


@pytest.mark.parametrize("gap", range(NAMES_AT - 30, NAMES_AT + 3))
def test_a_name_is_found_wherever_pieces_meet(running: tuple[RunningAgent, list[Upstream]], gap: int) -> None:
    content = b'{"a": "' + b"x" * gap + b'", "parameters": {"sequence_id": "' + LONG.encode() + b'"}}'
    assert asked(running[0], NUMBERS, content=content)[0] == 400


def spelled(name: str, text: str, **more: Any) -> Any:
    return pytest.param({"content": f'{{"parameters": {{{name}: "{text}"}}}}', **more}, id=f"{name} {len(text)} {more}")


@pytest.mark.parametrize(
    "request_",
    [
        spelled('"sequence_id"', LONG),
        spelled('"sequence_id"', LONG, headers=NAMED),
        spelled('"sequence_id"', LONG, headers={"inference-header-content-length": "1e-9"}),
        spelled('"sequence_id"', LONG, headers={"inference-header-content-length": "-1"}),
        spelled('"sequence_id": 5, "sequence_id"', LONG),
        spelled('"sequence_id" \n', LONG),
        spelled('"\\u0073equence_id"', SHORT),
        spelled('"sequence\\u005Fid"', SHORT),
        pytest.param({"content": binary(LONG)["content"], "headers": binary(LONG)["headers"]}, id="binary"),
        pytest.param({"content": gzip.compress(b"{}"), "headers": {"content-encoding": "gzip"}}, id="compressed"),
        pytest.param(named(LONG), id="compressed and named"),
        pytest.param({"content": b"x" * 18_000_000, "headers": NAMED}, id="large and named"),
    ],
)
def test_no_long_text_reaches_a_model_that_takes_numbers(
    running: tuple[RunningAgent, list[Upstream]], request_: dict[str, Any]
) -> None:
    agent, upstreams = running
    for upstream in upstreams:
        upstream.requests.clear()
    status, says = asked(agent, NUMBERS, **request_)
    assert status in (400, 413, 415) and "take sequence ids as numbers" in says
    assert not any(upstream.scored() for upstream in upstreams)


@pytest.mark.parametrize("say", [plain, binary])
@pytest.mark.parametrize("sequence", [5, 2**63, SHORT, ""])
def test_what_a_number_has_room_for_passes(
    running: tuple[RunningAgent, list[Upstream]], say: Any, sequence: Any
) -> None:
    assert asked(running[0], NUMBERS, **say(sequence))[0] == 200
    text = say(sequence)
    assert asked(running[0], NUMBERS, **{**text, "headers": {**text.get("headers", {}), **NAMED}})[0] == 200


# -- gRPC ------------------------------------------------------------------------------------------
def called(
    agent: RunningAgent, request: service_pb2.ModelInferRequest | bytes, endpoint: str = "images", **options: Any
) -> Any:
    """Which upstream answered, or the status."""
    shown = f"Bearer {mint()}" if endpoint == "tokens" else BEARER["authorization"]
    metadata = {"amphitrite-endpoint": endpoint, "authorization": shown, **options.pop("metadata", {})}
    trust = grpc.ssl_channel_credentials(agent.certificate.read_bytes())
    unbounded = [("grpc.max_send_message_length", -1)]
    with grpc.secure_channel(f"127.0.0.1:{agent.port}", trust, unbounded) as channel:
        call = channel.unary_unary(f"/{SERVICE}/ModelInfer", in_bytes)
        try:
            answer = call(request, metadata=tuple(metadata.items()), timeout=20, **options)
        except grpc.RpcError as error:
            return error.code().name, error.details()
        return json.loads(answer)["upstream"]


def in_bytes(sent: service_pb2.ModelInferRequest | bytes) -> bytes:
    return sent if isinstance(sent, bytes) else bytes(sent.SerializeToString())


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


def field(number: int, content: bytes | int) -> bytes:
    """One field, as protobuf writes it."""
    kind, value = (0, content) if isinstance(content, int) else (2, len(content))
    return varint(8 * number + kind) + varint(value) + (b"" if isinstance(content, int) else content)


def varint(value: int, spare: int = 0) -> bytes:
    """``spare``: bytes more than it takes."""
    digits = [value >> 7 * at & 127 for at in range(max(1, -(-value.bit_length() // 7)) + spare)]
    return bytes([*(digit | 128 for digit in digits[:-1]), digits[-1]])


NAME, VALUE = field(1, b"sequence_id"), field(2, field(3, LONG.encode()))
#: Of one message: how a client can write an id that is too long.
HIDDEN = {
    "as clients do": message(LONG).SerializeToString(),
    "the value first": field(4, VALUE + NAME),
    "twice": field(4, NAME + VALUE) + field(4, NAME + field(2, field(2, 5))),
    "a number after it": field(4, NAME + field(2, field(3, LONG.encode()) + field(2, 5))),
    "in two parts": field(4, NAME + VALUE + field(2, b"")),
    "other fields between": field(99, 1) + field(4, field(7, b"x") + NAME + field(98, 2) + VALUE),
    "a long key": varint(8 * 4 + 2, 3) + varint(len(NAME + VALUE), 2) + NAME + VALUE,
    "a key beyond 32 bits": b"\xa2\x80\x80\x80\x10" + varint(len(NAME + VALUE)) + NAME + VALUE,
    "behind a group": b"\x9b\x06\x9c\x06" + field(4, NAME + VALUE),
    "behind an unknown kind": b"\x0f" + field(4, NAME + VALUE),
    "cut off": field(4, NAME + VALUE) + b"\x3a\x7f",
    "behind many fields": field(99, 1) * FIELDS_MAX + field(4, NAME + VALUE),
    "behind many parameters": field(4, NAME) * FIELDS_MAX + field(4, NAME + VALUE),
    "behind a tensor": field(7, b"x" * 30_000) + field(4, NAME + VALUE),
}


@pytest.mark.parametrize("metadata", [{}, NAMED], ids=["searched", "named"])
@pytest.mark.parametrize("hidden", HIDDEN)
def test_no_long_text_in_a_message_reaches_a_model_that_takes_numbers(
    running: tuple[RunningAgent, list[Upstream]], hidden: str, metadata: dict[str, str]
) -> None:
    status, says = called(running[0], HIDDEN[hidden], "numbers", metadata=metadata)
    assert status == "INVALID_ARGUMENT" and "take sequence ids as numbers" in says


@pytest.mark.parametrize(
    "bomb",
    [
        pytest.param(field(99, 1) * 5_000_000, id="integers"),
        pytest.param(field(4, NAME) * 1_000_000, id="parameters"),
        pytest.param(field(4, field(2, field(2, 1) * 7_000_000)), id="values of a parameter"),
        pytest.param(field(7, b"") * 8_000_000, id="empty tensors"),
    ],
)
def test_a_message_of_many_fields_is_refused_after_few(
    running: tuple[RunningAgent, list[Upstream]], bomb: bytes
) -> None:
    """Sixteen megabytes, each of which held both of Envoy's workers for seconds."""
    status, says = called(running[0], bomb)
    assert status == "INVALID_ARGUMENT" and f"at most {FIELDS_MAX} fields" in says and "amphitrite-sequence" in says
    assert called(running[0], bomb, metadata=NAMED) in {"u0", "u1", "u2"}


def echoed(
    agent: RunningAgent, messages: Sequence[bytes], piece: int, **metadata: str
) -> tuple[str | None, list[bytes]]:
    """The status of a stream of these messages, sent ``piece`` bytes at a time, and what came back
    of them: the upstream answers each with itself."""
    shown = {"amphitrite-endpoint": "numbers", **BEARER, **metadata}
    frames = b"".join(b"\0" + len(one).to_bytes(4, "big") + one for one in messages)
    answer, trailer = b"", {}
    with Http2("127.0.0.1", agent.port) as client:
        head = {":method": "POST", ":path": f"/{SERVICE}/ModelStreamInfer", ":scheme": "https"}
        head |= {":authority": client.authority, "te": "trailers", "content-type": "application/grpc"}
        stream = client.h2.get_next_available_stream_id()
        client.h2.send_headers(stream, list({**head, **shown}.items()))
        for at in range(0, len(frames), piece):
            while client.h2.local_flow_control_window(stream) < piece:
                client.received()
            client.h2.send_data(stream, frames[at : at + piece])
            client.flush()
        client.h2.end_stream(stream)
        client.flush()
        while not client.ended:
            for event in client.received():
                if isinstance(event, h2.events.DataReceived):
                    answer += event.data
                if isinstance(event, (h2.events.ResponseReceived, h2.events.TrailersReceived)):
                    trailer.update(dict(event.headers))
                if isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)):
                    client.ended = True
    back = []
    while len(answer) >= 5 + int.from_bytes(answer[1:5], "big"):
        size = 5 + int.from_bytes(answer[1:5], "big")
        back.append(answer[5:size])
        answer = answer[size:]
    return trailer.get("grpc-status"), back


def ids(sent: bytes) -> list[str]:
    """The ids in a message, as Triton's clients read it; none where it is no message."""
    try:
        parameters = service_pb2.ModelInferRequest.FromString(sent).parameters
    except DecodeError:
        return []
    return [parameters["sequence_id"].string_param] if "sequence_id" in parameters else []


@pytest.mark.parametrize("hidden", HIDDEN)
def test_no_long_text_in_a_stream_reaches_a_model_that_takes_numbers(
    running: tuple[RunningAgent, list[Upstream]], hidden: str
) -> None:
    fine = message(7, 20).SerializeToString()
    for piece in (1, 7, 16_000):
        if len(HIDDEN[hidden]) < 5000 * piece:
            _, back = echoed(running[0], [fine, HIDDEN[hidden], fine], piece)
            assert len(back) < 3, "nothing passes behind it"
            assert all(one == fine or ids(one) == [] for one in back)


def test_a_stream_of_numbers_passes_as_it_is(running: tuple[RunningAgent, list[Upstream]]) -> None:
    sent = [
        message(one, size).SerializeToString()
        for one, size in ((5, 10), (SHORT, 10), ("", 0), (2**62, 30_000), (None, 5))
    ]
    assert echoed(running[0], sent, 16_000) == ("0", sent)
    assert echoed(running[0], [sent[0]], 16_000, **{"grpc-encoding": "gzip"}) == ("12", [])
