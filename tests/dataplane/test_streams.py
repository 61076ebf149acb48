"""A stream is bounded by its pauses, any other answer as a whole. Real Envoy."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from .agents import BEARER, RunningAgent
from .refusals import code_and_message

pytestmark = pytest.mark.serving

#: Seconds: more than twice what the deployment allows for an answer, or between two pieces.
LONG = 2.5


def read(client: httpx.Client, path: str, seconds: float) -> int:
    """Pieces of the answer that came within ``seconds``. Raises httpx.RemoteProtocolError when it
    is cut off."""
    end, pieces = time.monotonic() + seconds, 0
    with client.stream("POST", f"/endpoints/streams/v2/models/{path}", headers=BEARER, content=b"{}") as answer:
        assert answer.status_code == 200
        for _ in answer.iter_raw():
            pieces += 1
            if time.monotonic() > end:
                break
    return pieces


def test_a_stream_may_take_longer_than_the_timeout(scoring: RunningAgent) -> None:
    paths = ("trickles/generate_stream", "trickles/versions/1/generate_stream?x=1")
    with ThreadPoolExecutor(len(paths)) as pool:
        assert min(pool.map(lambda path: read(scoring.client, path, LONG), paths)) > 5


def test_a_stream_that_stalls_is_cut_off(scoring: RunningAgent) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        read(scoring.client, "stalls/generate_stream", 60)


def test_any_other_answer_is_bounded_as_a_whole(scoring: RunningAgent) -> None:
    paths = ("trickles/infer", "trickles/infer?x=/generate_stream")
    with ThreadPoolExecutor(len(paths)) as pool:
        for answer in [pool.submit(read, scoring.client, path, 60) for path in paths]:
            with pytest.raises(httpx.RemoteProtocolError):
                answer.result()


def test_a_stream_that_does_not_begin_is_told_its_bound(scoring: RunningAgent) -> None:
    answer = scoring.client.post("/endpoints/streams/v2/models/held/generate_stream", headers=BEARER)
    assert (answer.status_code, code_and_message(answer)[0]) == (408, "RequestTimeout")
    assert "1000 ms" in code_and_message(answer)[1]
