"""Samples of answers without Envoy: what is recorded, how many are taken, where they are sent
again."""

from __future__ import annotations

import json
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from amphitrite.dataplane.comparison.answers import BODY_MAX
from amphitrite.dataplane.envoy.answers import repetition, sample_limits
from amphitrite.dataplane.envoy.answers.comparer import WORKERS, Comparer
from amphitrite.dataplane.envoy.answers.exchange import Exchange, Recording, State
from amphitrite.dataplane.envoy.answers.sample_limits import Bucket, SampleLimits
from amphitrite.dataplane.envoy.protobuf.messages import ProcessingRequest
from amphitrite.dataplane.metrics.answer_counts import Answers
from amphitrite.dataplane.table.routing_table import (
    Address,
    Cluster,
    Comparison,
    InstanceAddress,
    Route,
    RoutingTable,
    SocketAddress,
    Target,
)

from ....ports import free_port
from ....waiting import wait_until
from ...upstream import Upstream

PATH = "/v2/models/m/infer"


def headers(kind: str, end: bool = False, **values: str) -> Any:
    listed = [{"key": name.replace("_", "-"), "raw_value": text.encode()} for name, text in values.items()]
    return ProcessingRequest(**{kind: {"headers": {"headers": listed}, "end_of_stream": end}})


def body(kind: str, data: bytes, end: bool = False) -> Any:
    return ProcessingRequest(**{kind: {"body": data, "end_of_stream": end}})


ASKED = headers("request_headers", **{":path": "/endpoints/a/", "content_type": "application/json"})
ANSWERED = headers("response_headers", **{":status": "200", "inference_header_content_length": "2"})


def states(*messages: Any) -> tuple[list[State], Recording]:
    recording = Recording("a")
    return [recording.add(message) for message in messages], recording


def test_an_exchange_comes_in_pieces() -> None:
    pieces = [body("request_body", b"ab"), body("request_body", b"c", True), ANSWERED, body("response_body", b"de")]
    found, recording = states(ASKED, *pieces, body("response_body", b"", True))
    assert found == [State.OPEN] * 5 + [State.COMPLETE]
    assert recording.exchange() == Exchange(
        "a", "/endpoints/a/", {"content-type": "application/json"}, b"abc", b"de", "2", ""
    )
    assert recording.size == recording.exchange().size == 5


@pytest.mark.parametrize(
    ("messages", "state"),
    [
        ([headers("response_headers", **{":status": "424"})], State.USELESS),
        ([headers("response_headers")], State.USELESS),
        ([headers("response_headers", True, **{":status": "200"})], State.USELESS),
        ([body("request_body", bytes(BODY_MAX)), body("request_body", b"x")], State.TOO_LARGE),
        ([ANSWERED, body("response_body", bytes(BODY_MAX + 1), True)], State.TOO_LARGE),
        ([ProcessingRequest()], State.OPEN),
    ],
)
def test_what_is_of_no_use_is_known_at_once(messages: Sequence[Any], state: State) -> None:
    assert states(ASKED, *messages)[0][-1] is state


def test_a_bucket_is_paid_back() -> None:
    bucket = Bucket(rate=2.0, burst=4.0)
    assert bucket.available(0.0)
    bucket.take(6)
    assert not bucket.available(0.5) and not bucket.available(1.0) and bucket.available(1.5)
    for _ in range(4):
        assert bucket.available(100.0)
        bucket.take(1)
    assert not bucket.available(100.0)


def test_samples_are_limited_by_time_number_and_bytes() -> None:
    limits = SampleLimits()
    assert [limits.enter(0.0) for _ in range(40)].count(True) == sample_limits.IN_WORK_MAX
    for _ in range(sample_limits.IN_WORK_MAX):
        limits.leave(0)
    left = int(sample_limits.BURST) - sample_limits.IN_WORK_MAX
    taken = 0
    while limits.enter(0.0):
        limits.leave(0)
        taken += 1
    assert taken == left
    assert limits.enter(1.0) and limits.hold(sample_limits.HELD_BYTES_MAX) and not limits.hold(1)
    limits.leave(sample_limits.HELD_BYTES_MAX + 1)
    # What was held beyond the rate is paid for.
    assert not limits.enter(2.0) and limits.enter(60.0)


@pytest.mark.parametrize(
    ("path", "score", "upstream"),
    [
        ("/endpoints/a/", PATH, PATH),
        ("/endpoints/a", PATH, PATH),
        ("/", PATH, PATH),
        ("/endpoints/a/?x=/y", PATH, f"{PATH}?x=/y"),
        ("/endpoints/a/", None, None),
        (f"/endpoints/a{PATH}", None, PATH),
        (f"{PATH}?x", None, f"{PATH}?x"),
    ],
)
def test_a_path_is_the_candidate_s(path: str, score: str | None, upstream: str | None) -> None:
    assert repetition.upstream_path("a", path, score) == upstream


def serving(answer: bytes) -> tuple[Address, threading.Thread, socket.socket]:
    """A server that answers one request with these bytes, in two pieces, and closes."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(answer[:20])
            connection.sendall(answer[20:])

    thread = threading.Thread(target=serve)
    thread.start()
    return Address("127.0.0.1", listening.getsockname()[1]), thread, listening


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc", repetition.Answer(b"abc", "")),
        (b"HTTP/1.1 200 OK\r\nInference-Header-Content-Length: 1\r\n\r\nabc", repetition.Answer(b"abc", "1")),
        (CHUNKED + b"0\r\n\r\n", repetition.Answer(b"abc", "")),
        (CHUNKED, None),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc", None),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9999999\r\n\r\n" + bytes(BODY_MAX + 1), None),
        (b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n", None),
        (b"nonsense\r\n\r\n", None),
        (b"", None),
    ],
    ids=lambda value: value[:60] if isinstance(value, bytes) else "",
)
def test_only_a_whole_answer_is_one(answer: bytes, expected: repetition.Answer | None) -> None:
    address, thread, listening = serving(answer)
    with listening:
        assert repetition.send([address], PATH, {}, b"{}", 20.0) == expected
        thread.join()


def test_what_cannot_be_reached_is_passed_over_and_time_is_limited() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="amphitrite-") as directory,
        Upstream("one", Path(directory) / "http") as one,
        Upstream("two") as two,
    ):
        nobody: list[InstanceAddress] = [Address("127.0.0.1", free_port()), SocketAddress(f"{directory}/none")]
        for upstream, address in (
            (one, SocketAddress(f"{directory}/http")),
            (two, Address("127.0.0.1", two.port)),
        ):
            found = repetition.send([*nobody, address], PATH, {"content-type": "a/b"}, b"{}", 20.0)
            assert found is not None and json.loads(found.body)["upstream"] == upstream.name
            assert upstream.requests[-1]["headers"]["content-type"] == "a/b"
        assert repetition.send(nobody, PATH, {}, b"{}", 20.0) is None
        at_two = [Address("127.0.0.1", two.port)]
        for kind in ("held", "trickles", "vanishes"):
            assert repetition.send(at_two, PATH.replace("/m/", f"/{kind}/"), {}, b"{}", 0.4) is None
        # A request that may have run is not sent to another instance.
        assert len(one.requests) == 1


@pytest.fixture
def green() -> Iterator[Upstream]:
    with Upstream("green") as upstream:
        yield upstream


def comparing(upstream: Upstream) -> RoutingTable:
    targets = Target("blue", "b", 5.0), Target("green", "g", 20.0, PATH)
    route = Route("a", (), targets, comparison=Comparison("blue", "green", 100, 0.0))
    return RoutingTable(
        1,
        (route, Route("quiet", (), ())),
        (Cluster("b", (), 1, 1.0), Cluster("g", (Address("127.0.0.1", upstream.port),), 1, 1.0)),
    )


ANSWER = b'{"outputs":[{"name":"o","datatype":"FP32","shape":[1],"data":[1]}]}'


def start(name: str, part: Any) -> threading.Thread:
    thread = threading.Thread(target=part, name=name)
    thread.start()
    return thread


def test_few_requests_are_repeated_at_once_and_what_is_beyond_counts(green: Upstream) -> None:
    table = [comparing(green)]
    comparer = Comparer(lambda: table[0], clock=lambda: 0.0)
    held = Exchange("a", "/endpoints/a/v2/models/held/infer", {}, b"{}", ANSWER)
    comparer.start(start)
    assert not comparer.enter("quiet") and not comparer.enter("nobody")
    for _ in range(sample_limits.IN_WORK_MAX):
        assert comparer.enter("a") and comparer.hold(held.size)
        comparer.submit(held)
    assert [comparer.enter("a") for _ in range(3)] == [False] * 3
    for _ in range(WORKERS):
        assert green.arrived.acquire(timeout=60)
    assert not green.arrived.acquire(blocking=False)
    assert comparer.take() == {("a", "green"): Answers({"answers/dropped": 3})}
    green.answer = lambda _: (ANSWER, {})
    green.release()
    total: list[Answers] = []

    def done() -> bool:
        total.extend(comparer.take().values())
        return sum(one.counts.get("answers/compared", 0) for one in total) == sample_limits.IN_WORK_MAX

    wait_until(done, "all comparisons")
    assert {name for one in total for name in one.counts} == {"answers/compared"}
    # Whoever is no longer compared is not asked, and nothing is counted.
    asked = len(green.requests)
    wait_until(lambda: comparer.enter("a"), "a place")
    table[0] = RoutingTable(2)
    comparer.submit(held)
    comparer.stop()
    wait_until(lambda: not any(t.name.startswith("compare ") for t in threading.enumerate()), "the end of all threads")
    assert len(green.requests) == asked and comparer.take() == {}
