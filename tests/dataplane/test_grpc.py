"""What a call in gRPC meets, row by row: status, words, metadata. Through a real Envoy that a real
agent configured."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from amphitrite.dataplane.table.routing_table import (
    Address,
    Cluster,
    InstanceAddress,
    Route,
    RoutingTable,
    Secret,
    SocketAddress,
    Target,
)

from .agents import BEARER, CHECK, KEY, PATIENCE_S, RunningAgent, cluster, eventually, table
from .conftest import MakeAgent
from .grpc_upstream import SERVICE, GrpcUpstream
from .minting import ISSUERS, mint
from .upstream import Upstream

pytestmark = pytest.mark.serving

PIN = "azureml-model-deployment"
INFER = f"/{SERVICE}/ModelInfer"
STREAM = f"/{SERVICE}/ModelStreamInfer"


@dataclass(frozen=True, slots=True)
class Calls:
    """One agent, its model servers by name, and a client. ``images``: two targets and a mirror;
    ``idle``: no traffic; ``brief``: half a second, one request at a time; ``ill``: unhealthy;
    ``own``: without gRPC; ``tokens``."""

    agent: RunningAgent
    http: Mapping[str, Upstream]
    grpc: Mapping[str, GrpcUpstream]
    channel: grpc.Channel

    def unary(self, method: str, metadata: Mapping[str, str], body: bytes = b"x", timeout: float = 20) -> Any:
        call = self.channel.unary_unary(method)
        return call.with_call(body, metadata=tuple(metadata.items()), timeout=timeout)

    def healthy(self, endpoint: str) -> bool:
        try:
            self.unary(INFER, {"amphitrite-endpoint": endpoint, "authorization": f"Bearer {KEY}"})
        except grpc.RpcError as error:
            return bool(error.code() != grpc.StatusCode.UNAVAILABLE)
        return True


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory, certificate: tuple[Path, Path]) -> Iterator[Calls]:
    with ExitStack() as stack:
        names = ("blue", "green", "ill", "brief", "own")
        http = {name: stack.enter_context(Upstream(name)) for name in names}
        by_grpc = {name: stack.enter_context(GrpcUpstream(name)) for name in names}
        agent = RunningAgent(tmp_path_factory.mktemp("agent"), *certificate)
        stack.callback(agent.close)
        agent.start()
        agent.control_plane.publish(calls_table(http, by_grpc))
        agent.control_plane.wait_for(acknowledged_version=1, timeout=30)
        trust = grpc.ssl_channel_credentials(certificate[0].read_bytes())
        options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        channel = stack.enter_context(grpc.secure_channel(f"127.0.0.1:{agent.port}", trust, options))
        made = Calls(agent, http, by_grpc, channel)
        http["ill"].ready = False
        eventually(lambda: not made.healthy("ill"))
        yield made


def calls_table(http: Mapping[str, Upstream], by_grpc: Mapping[str, GrpcUpstream]) -> RoutingTable:
    keys = (Secret(KEY),)
    blue, green = Target("blue", "blue", PATIENCE_S), Target("green", "green", PATIENCE_S)

    def bounded(name: str) -> Cluster:
        port = None if name == "own" else by_grpc[name].port
        address = Address("127.0.0.1", http[name].port, port)
        return Cluster(name, (address,), 1 if name == "brief" else 64, 5.0, CHECK)

    return RoutingTable(
        version=1,
        issuers=ISSUERS,
        routes=(
            Route("brief", keys, (Target("brief", "brief", 0.5, sample_every_s=0.1),), (("brief", 100),)),
            Route("idle", keys, (Target("absent", None, PATIENCE_S), blue)),
            Route("ill", keys, (Target("ill", "ill", PATIENCE_S),), (("ill", 100),)),
            Route("images", keys, (blue, green, Target("own", "own", PATIENCE_S)), (("blue", 100),), (("green", 100),)),
            Route("other", (Secret("other-key"),), (blue,), (("blue", 100),)),
            Route("own", keys, (Target("own", "own", PATIENCE_S),), (("own", 100),)),
            Route("tokens", (), (blue,), (("blue", 100),), auth="aml_token"),
        ),
        clusters=tuple(bounded(name) for name in sorted(http)),
    )


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    status: str
    says: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    endpoint: str | None = "images"
    method: str = INFER
    body: bytes = b"x"
    key: str | None = f"Bearer {KEY}"


ROWS = [
    Row("key", "OK"),
    Row("pinned", "OK", metadata={PIN: "GREEN"}),
    Row("pinned without traffic", "OK", endpoint="idle", metadata={PIN: "blue"}),
    Row("health", "OK", method="/grpc.health.v1.Health/Check"),
    Row("a model's failure", "INVALID_ARGUMENT", "unexpected shape for input", body=b"fails"),
    Row("no key", "UNAUTHENTICATED", "no key", key=None),
    Row("empty key", "UNAUTHENTICATED", "no key", key=""),
    Row("a space before the scheme", "OK", key=f" Bearer {KEY}"),
    Row("scheme in lower case", "OK", key=f"bearer {KEY}"),
    Row("a space before a token", "OK", endpoint="tokens", key=f" Bearer {mint('tokens')}"),
    Row("wrong key", "UNAUTHENTICATED", key="Bearer nope"),
    Row("another endpoint's key", "UNAUTHENTICATED", key="Bearer other-key"),
    Row("no token", "UNAUTHENTICATED", "no token", endpoint="tokens", key=None),
    Row("a key for a token", "UNAUTHENTICATED", endpoint="tokens"),
    Row("another endpoint's token", "UNAUTHENTICATED", endpoint="tokens", key=f"Bearer {mint('other')}"),
    Row("token", "OK", endpoint="tokens", key=f"Bearer {mint('tokens')}"),
    Row("unknown endpoint", "NOT_FOUND", "no such endpoint", endpoint="nobody"),
    Row("no endpoint", "NOT_FOUND", "amphitrite-endpoint", endpoint=None),
    Row("empty endpoint", "NOT_FOUND", endpoint=""),
    Row("endpoint in other case", "NOT_FOUND", endpoint="Images"),
    Row("no traffic", "NOT_FOUND", "no deployment of endpoint 'idle' has traffic", endpoint="idle"),
    Row("pinned to nothing", "NOT_FOUND", "no deployment 'x\"%s'", metadata={PIN: 'x"%s'}),
    Row("pinned, nothing serves", "UNAVAILABLE", "is ready", endpoint="idle", metadata={PIN: "absent"}),
    Row("no healthy instance", "UNAVAILABLE", "no healthy instance", endpoint="ill"),
    Row("without gRPC", "UNIMPLEMENTED", "does not serve gRPC", endpoint="own"),
    Row("pinned to one without gRPC", "UNIMPLEMENTED", "'own' does not serve gRPC", metadata={PIN: "own"}),
    # The model server is told the deadline as well, and may be the first to say so, in its own
    # words.
    Row("too late", "DEADLINE_EXCEEDED", "", endpoint="brief", body=b"held"),
    Row("a stranger's service", "UNIMPLEMENTED", "no such method", method="/other.Service/ModelInfer"),
    Row("a method that is not there", "UNIMPLEMENTED", "no such method", method=f"/{SERVICE}/ModelInference"),
    Row("a method with a query", "UNIMPLEMENTED", "no such method", method=f"{INFER}?x=1"),
    Row("a method in other case", "UNIMPLEMENTED", "no such method", method=INFER.lower()),
    Row("401 before what is refused", "UNAUTHENTICATED", method=f"/{SERVICE}/RepositoryIndex", key=None),
    Row("by path", "UNIMPLEMENTED", "no such method", method=f"/endpoints/images{INFER}", endpoint=None),
    Row("HTTP's paths", "UNIMPLEMENTED", "no such", method="/endpoints/images/v2/repository/index", endpoint=None),
]  # fmt: skip
ROWS += [
    Row(method, "PERMISSION_DENIED", "cannot be reached", method=f"/{SERVICE}/{method}")
    for method in (
        *("RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload", "TraceSetting", "LogSettings"),
        *("SystemSharedMemoryStatus", "SystemSharedMemoryRegister", "CudaSharedMemoryUnregister"),
    )
]
#: None of these gets to another endpoint, or to another method, than what stands there anyway.
ROWS += [Row("from another endpoint to this one", "UNAUTHENTICATED", endpoint="other/../images")]
TRICKS = ["../images", "/images", "%69mages", "images%2f", "x?/images", "images,images"]
ROWS += [Row(f"endpoint {value}", "NOT_FOUND", endpoint=value) for value in TRICKS]
INSIDE = ["images/..", "images/v2/repository/index?", "images//", f"images{INFER}?", "images/../other"]
ROWS += [
    Row(f"{value} {status}", status, endpoint=value, method=f"/{SERVICE}/{method}")
    for value in INSIDE
    for method, status in (("RepositoryIndex", "PERMISSION_DENIED"), ("ModelInfer", "OK"))
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rule(row: Row, calls: Calls) -> None:
    metadata = {"x-ms-client-request-id": "mine", "amphitrite-admin": "local", **row.metadata}
    metadata |= {} if row.endpoint is None else {"amphitrite-endpoint": row.endpoint}
    metadata |= {} if row.key is None else {"authorization": row.key}
    try:
        answer, call = calls.unary(row.method, metadata, row.body)
    except grpc.RpcError as error:
        call = error
        answer = None
    assert call.code().name == row.status, call.details()
    told = dict(call.initial_metadata() or ()) | dict(call.trailing_metadata() or ())
    assert len(told["x-request-id"]) == 36
    assert row.says in call.details() and "{" not in call.details()
    if answer is None:
        return
    found = json.loads(answer)
    assert told[PIN] == found["upstream"] == row.metadata.get(PIN, "blue").lower()
    assert found["method"] == row.method
    ours = {"authorization", "amphitrite-admin", "amphitrite-endpoint", "amphitrite-scope"}
    assert ours.isdisjoint(found["metadata"])


def test_two_endpoints_at_once_are_the_first_or_none(calls: Calls) -> None:
    for names in (("images", "other"), ("other", "images")):
        pairs = tuple(("amphitrite-endpoint", name) for name in names)
        with pytest.raises(grpc.RpcError) as caught:
            calls.channel.unary_unary(INFER)(b"x", metadata=(*pairs, ("authorization", "Bearer nope")), timeout=20)
        assert caught.value.code().name in ("UNAUTHENTICATED", "NOT_FOUND")


@pytest.mark.parametrize("path", ["/v2/repository/index", "/v2/models/m/infer", INFER, "/endpoints/other/v2/x", "/x"])
def test_in_http_the_metadata_opens_nothing(path: str, calls: Calls) -> None:
    calls.http["blue"].requests.clear()
    for endpoint in ("images", "images/v2/%72epository/index?", "images/../.."):
        headers = {**BEARER, "amphitrite-endpoint": endpoint}
        assert calls.agent.client.post(path, headers=headers, json={}).status_code == 404
    assert calls.http["blue"].scored() == []


def test_an_unary_call_is_copied_and_a_stream_is_not(calls: Calls) -> None:
    calls.grpc["green"].requests.clear()
    metadata = {"amphitrite-endpoint": "images", "authorization": f"Bearer {KEY}"}
    list(calls.channel.stream_stream(STREAM)(iter([b"one"]), metadata=tuple(metadata.items()), timeout=20))
    calls.unary(INFER, metadata, b"copied")
    eventually(lambda: bool(calls.grpc["green"].requests))
    assert [(r["method"], r["size"]) for r in calls.grpc["green"].requests] == [(INFER, 6)]


def test_a_large_message_goes_through(calls: Calls) -> None:
    metadata = {"amphitrite-endpoint": "images", "authorization": f"Bearer {KEY}", PIN: "blue"}
    answer, _ = calls.unary(INFER, metadata, b"x" * 20_000_000)
    assert json.loads(answer)["size"] == 20_000_000


def test_a_deadline_that_is_shorter_than_ours_counts(calls: Calls) -> None:
    upstream = calls.grpc["blue"]
    upstream.hold()
    # By HTTP/1.1, so that nobody on this side gives up first.
    headers = {**BEARER, "amphitrite-endpoint": "images", "content-type": "application/grpc", "te": "trailers"}
    body = b"\0\0\0\0\4held"
    answer = calls.agent.client.post(INFER, headers={**headers, "grpc-timeout": "100m"}, content=body)
    assert (answer.status_code, answer.headers["grpc-status"]) == (200, "4")
    # The proxy's words, or those of the server behind it, which counts the same time.
    assert answer.headers["grpc-message"] == "Deadline Exceeded" or "own deadline" in answer.headers["grpc-message"]
    assert upstream.ended.acquire(timeout=30), "it was cancelled there too"


def test_one_more_than_the_bound_is_refused_and_both_are_sampled(calls: Calls) -> None:
    metadata = {"amphitrite-endpoint": "brief", "authorization": f"Bearer {KEY}"}
    upstream = calls.grpc["brief"]
    upstream.hold()
    upstream.arrived = threading.Semaphore(0)
    first = calls.channel.unary_unary(INFER).future(b"held", metadata=tuple(metadata.items()), timeout=20)
    assert upstream.arrived.acquire(timeout=30)
    with pytest.raises(grpc.RpcError) as caught:
        calls.unary(INFER, metadata)
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "'brief' has 1 requests in flight" in caught.value.details()
    assert first.exception().code() == grpc.StatusCode.DEADLINE_EXCEEDED
    samples = calls.agent.control_plane.wait_for_samples(lambda found: sum(one[8] for one in found) > 0)
    assert {(one[0], one[1]) for one in samples} == {("brief", "brief")}
    assert max(one[4] for one in samples) == 1


def test_a_stream_is_bounded_by_silence_and_not_by_its_length(calls: Calls) -> None:
    metadata = (("amphitrite-endpoint", "brief"), ("authorization", f"Bearer {KEY}"))
    go_on = threading.Semaphore(0)
    pause = threading.Event()

    def requests() -> Iterator[bytes]:
        for number in range(5):
            pause.wait(0.2)  # In all twice what a unary call has.
            yield str(number).encode()
        go_on.acquire(timeout=60)

    stream = calls.channel.stream_stream(STREAM)(requests(), metadata=metadata, timeout=20)
    assert [next(stream) for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]
    with pytest.raises(grpc.RpcError) as caught:
        next(stream)
    go_on.release()
    assert caught.value.code() != grpc.StatusCode.OK


@pytest.mark.parametrize("sockets", [False, True], ids=["tcp", "sockets"])
def test_what_is_in_flight_by_grpc_drains(make_agent: MakeAgent, certificate: tuple[Path, Path], sockets: bool) -> None:
    agent = make_agent()
    agent.options = ("--metrics-every-s", "0.3")
    agent.start()
    paths = (agent.run / "http", agent.run / "grpc") if sockets else (None, None)
    with Upstream("old", paths[0]) as http, GrpcUpstream("old", paths[1]) as old:
        address: InstanceAddress = Address("127.0.0.1", http.port, old.port)
        if sockets:
            address = SocketAddress(*map(str, paths))
        one, two = (replace(cluster(name, [http], drain_s=20), addresses=(address,)) for name in ("one", "two"))
        agent.put_in_force(table(1, [one], [("one", 100)]))
        trust = grpc.ssl_channel_credentials(certificate[0].read_bytes())
        metadata = (("amphitrite-endpoint", "images"), ("authorization", f"Bearer {KEY}"))
        with grpc.secure_channel(f"127.0.0.1:{agent.port}", trust) as channel:
            call = channel.unary_unary(INFER).future(b"held", metadata=metadata, timeout=20)
            assert old.arrived.acquire(timeout=30)
            agent.control_plane.wait_for_metrics(lambda counted: counted["in_flight"].get("images") == {"one": 1})
            agent.put_in_force(table(2, [two], [("two", 100)]))
            with pytest.raises(grpc.FutureTimeoutError):  # A cluster that is taken away ends what is in flight on it.
                call.result(timeout=1)
            old.release()
            assert json.loads(call.result(timeout=60))["upstream"] == "old"
            agent.control_plane.wait_for(drained_version=2)
