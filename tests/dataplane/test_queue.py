"""Requests above the limit wait for a place (``max_queue_wait_ms``): a real Envoy, a real agent."""

from __future__ import annotations

import socket
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import grpc
import httpx
import pytest

from amphitrite.dataplane.metrics.counters import Totals, totals_from_json
from amphitrite.dataplane.table.routing_table import Address, Cluster, Route, RoutingTable, Secret, Target

from ..load.background import Client, load
from .agents import BEARER, CHECK, KEY, PATIENCE_S, RESET_CONNECTIONS, RunningAgent, eventually
from .conftest import MakeAgent
from .grpc_upstream import SERVICE, GrpcUpstream
from .minting import ISSUERS, mint
from .upstream import Upstream

pytestmark = pytest.mark.serving

PIN = "azureml-model-deployment"
BRIEF_S = 0.3
#: The place in a sample (``metrics.demand``).
HELD_COUNT = 5
LIMIT = 2


def held(endpoint: str = "images") -> str:
    return f"/endpoints/{endpoint}/v2/models/held/infer"


def one_cluster(upstream: Upstream, limit: int, by_grpc: GrpcUpstream | None = None) -> Cluster:
    address = Address("127.0.0.1", upstream.port, by_grpc.port if by_grpc else None)
    return Cluster(upstream.name, (address,), limit, 5.0, CHECK, queue=True)


def queue_table(version: int, upstream: Upstream, limit: int, by_grpc: GrpcUpstream | None = None) -> RoutingTable:
    """Targets of one cluster: ``patient`` has the traffic, ``brief`` waits less long. ``tokens`` is
    an endpoint with tokens."""
    brief = Target("brief", upstream.name, PATIENCE_S, "/v2/models/m/infer", queue_wait_s=BRIEF_S)
    patient = replace(brief, name="patient", queue_wait_s=PATIENCE_S, sample_every_s=0.1)
    return RoutingTable(
        version,
        (
            Route("images", (Secret(KEY),), (brief, patient), (("patient", 100),)),
            Route("tokens", (), (patient,), (("patient", 100),), auth="aml_token"),
        ),
        (one_cluster(upstream, limit, by_grpc),),
        issuers=ISSUERS,
    )


def waiting(agent: RunningAgent) -> int:
    return sum(counted(agent).waiting.values())


def counted(agent: RunningAgent) -> Totals:
    found = agent.control_plane.metrics
    return Totals(0.0) if found is None else totals_from_json(found)


@dataclass(frozen=True, slots=True)
class Queue:
    """One agent, its model server by HTTP and gRPC, and clients."""

    agent: RunningAgent
    http: Upstream
    by_grpc: GrpcUpstream
    channel: grpc.Channel
    pool: ThreadPoolExecutor

    def send(self, address: str, content: bytes | Iterator[bytes] = b"{}", **headers: str) -> Future[httpx.Response]:
        return self.pool.submit(self.agent.client.post, address, headers={**BEARER, **headers}, content=content)

    def waiting(self) -> int:
        return waiting(self.agent)

    @contextmanager
    def full(self) -> Iterator[list[Future[httpx.Response]]]:
        """All places are taken; at the end everybody is answered."""
        self.http.hold()
        first = [self.send(held()) for _ in range(LIMIT)]
        for _ in first:
            assert self.http.arrived.acquire(timeout=PATIENCE_S)
        try:
            yield first
        finally:
            self.http.release()
            assert [one.result().status_code for one in first] == [200] * LIMIT
            eventually(lambda: self.waiting() == 0)


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory, certificate: tuple[Path, Path]) -> Iterator[Queue]:
    with ExitStack() as stack:
        http, by_grpc = stack.enter_context(Upstream("blue")), stack.enter_context(GrpcUpstream("blue"))
        agent = RunningAgent(tmp_path_factory.mktemp("agent"), *certificate)
        stack.callback(agent.close)
        agent.options = ("--metrics-every-s", "0.1")
        agent.start()
        agent.put_in_force(queue_table(1, http, LIMIT, by_grpc))
        trust = grpc.ssl_channel_credentials(certificate[0].read_bytes())
        channel = stack.enter_context(grpc.secure_channel(f"127.0.0.1:{agent.port}", trust))
        yield Queue(agent, http, by_grpc, channel, stack.enter_context(ThreadPoolExecutor(20)))


def test_ten_requests_at_a_limit_of_two_are_all_answered(queue: Queue) -> None:
    queue.http.requests.clear()
    with queue.full() as first:
        more = [queue.send(held()) for _ in range(8)]
        # Whatever its body: longer than what Envoy buffers, or of unknown length.
        more.append(queue.send(held(), content=bytes(5_000_000)))
        more.append(queue.send(held(), content=iter([b"one", b"two"])))
        # A request to read metadata takes a place too, and so does one by a token.
        more.append(queue.pool.submit(queue.agent.client.get, "/endpoints/images/v2/models/m", headers=BEARER))
        more.append(queue.send(held("tokens"), authorization=f"Bearer {mint('tokens')}"))
        eventually(lambda: queue.waiting() == len(more))
        assert len(queue.http.scored()) == LIMIT
        # They are part of the demand.
        queue.agent.control_plane.wait_for_samples(lambda found: bool(found) and found[-1][HELD_COUNT] == len(more))
    assert {one.result().status_code for one in (*first, *more)} == {200}
    assert len(queue.http.scored()) == LIMIT + len(more)


def test_who_has_waited_long_enough_is_answered_429(queue: Queue) -> None:
    with queue.full():
        late = [queue.send(held(), **{PIN: "brief"}) for _ in range(3)]
        for one in late:
            answer = one.result()
            assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
            assert "blue" not in answer.headers and answer.headers["x-request-id"]
            assert "TooManyRequests: deployment 'brief' has 2 requests in flight" in answer.json()["error"]
            assert "has waited 300 ms for a place (request_settings.max_queue_wait_ms)" in answer.json()["error"]
        call = queue.channel.unary_unary(f"/{SERVICE}/ModelInfer").with_call
        metadata = (("amphitrite-endpoint", "images"), (PIN, "brief"), *BEARER.items())
        with pytest.raises(grpc.RpcError) as refused:
            call(b"x", metadata=metadata, timeout=PATIENCE_S)
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "has waited 300 ms" in (refused.value.details() or "")
    series = ("images", "brief")
    eventually(lambda: counted(queue.agent).counters[series].get("requests/429/TooManyRequests") == 4)
    outcomes = {name for name in counted(queue.agent).counters[series] if name.startswith("requests/")}
    assert outcomes == {"requests/429/TooManyRequests"}


def test_http_and_grpc_share_the_places_and_a_stream_is_one(queue: Queue) -> None:
    metadata = (("amphitrite-endpoint", "images"), *BEARER.items())
    ends = [threading.Event() for _ in range(LIMIT)]

    def messages(end: threading.Event) -> Iterator[bytes]:
        yield b"one"
        end.wait(PATIENCE_S)
        yield b"two"

    method = queue.channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")
    streams = [method(messages(end), metadata=metadata, timeout=PATIENCE_S) for end in ends]
    assert [next(stream) for stream in streams] == [b"one"] * LIMIT
    queue.http.release()
    waits = queue.send(held())
    call = queue.channel.unary_unary(f"/{SERVICE}/ModelInfer").future(b"x", metadata=metadata, timeout=PATIENCE_S)
    eventually(lambda: queue.waiting() == 2)
    for end in ends:
        end.set()
    assert [next(stream) for stream in streams] == [b"two"] * LIMIT
    assert waits.result().status_code == 200 and call.result()
    assert [stream.code() for stream in streams] == [grpc.StatusCode.OK] * LIMIT


def test_who_leaves_gives_the_place_back(queue: Queue) -> None:
    context = ssl.create_default_context(cafile=str(queue.agent.certificate))

    def begin() -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", queue.agent.port))
        client = context.wrap_socket(plain, server_hostname="127.0.0.1")
        head = f"POST {held()} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-length: 2\r\n\r\n"
        client.sendall(head.encode() + b"{}")
        return client

    queue.http.hold()
    with ExitStack() as stack:
        for client in [begin() for _ in range(LIMIT)]:
            stack.callback(client.close)
            assert queue.http.arrived.acquire(timeout=PATIENCE_S)
        with begin():
            eventually(lambda: queue.waiting() == 1)
        eventually(lambda: queue.waiting() == 0)
        stays = queue.send(held())
        eventually(lambda: queue.waiting() == 1)
    # Both that were in flight have left.
    assert queue.http.arrived.acquire(timeout=PATIENCE_S)
    queue.http.release()
    assert stays.result().status_code == 200


def test_places_follow_the_table_and_a_removed_deployment_ends_its_queue(queue: Queue) -> None:
    with queue.full():
        waits = [queue.send(held()) for _ in range(2)]
        eventually(lambda: queue.waiting() == 2)
        # One more place: one of those that wait goes on.
        queue.agent.put_in_force(queue_table(2, queue.http, LIMIT + 1, queue.by_grpc))
        assert queue.http.arrived.acquire(timeout=PATIENCE_S)
        eventually(lambda: queue.waiting() == 1)
        queue.agent.put_in_force(RoutingTable(3))
        assert queue.agent.client.post(held(), headers=BEARER).status_code == 404
        assert max(report["drained_version"] for report in queue.agent.control_plane.reports) < 3
    # Its instances stay until the last one of those that waited is answered.
    assert [one.result().status_code for one in waits] == [200, 200]
    queue.agent.control_plane.wait_for(drained_version=3)
    queue.agent.put_in_force(queue_table(4, queue.http, LIMIT, queue.by_grpc))


@RESET_CONNECTIONS
def test_an_agent_that_is_gone_or_replaced_loses_no_request(make_agent: MakeAgent, tmp_path: Path) -> None:
    agent = make_agent()
    agent.options = ("--metrics-every-s", "0.1")
    agent.start()
    clients = (Client("queued", held(), b"{}", connections=6, think_ms=0),)
    with Upstream("blue") as blue, ThreadPoolExecutor(6) as pool:
        agent.put_in_force(queue_table(1, blue, 1))
        answers = [pool.submit(agent.client.post, held(), headers=BEARER) for _ in range(6)]
        eventually(lambda: waiting(agent) == 5)
        # Those that wait go on. Envoy's own limit is higher by two.
        agent.kill()
        eventually(lambda: sum(one.done() for one in answers) == 3)
        blue.release()
        assert Counter(one.result().status_code for one in answers) == {200: 3, 429: 3}

        agent.control_plane.reports.clear()
        agent.start()
        agent.put_in_force(queue_table(2, blue, 8))
        with load(f"https://127.0.0.1:{agent.port}", agent.certificate, KEY, tmp_path / "load", clients) as seen:
            agent.kill()
            assert agent.client.post(held(), headers=BEARER).status_code == 200
            agent.start()
            eventually(lambda: agent.log().count("adopted envoy") == 2)
            # Another Envoy takes over. Both ask the same agent.
            before = agent.envoy()
            agent.outdate()
            agent.kill()
            agent.start()
            eventually(lambda: agent.envoy() != before)
        assert seen.failed == {}
