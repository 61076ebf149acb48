"""Many clients that connect and say nothing, or not enough: others are served meanwhile, and each
of the many is cut off."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import sys
from collections.abc import Callable, Iterator

import httpx
import pytest

from .agents import BEARER, INFER, RunningAgent, cluster, eventually, table
from .conftest import MakeAgent
from .http2 import Http2
from .test_abuse import HEAD, connected
from .upstream import Upstream

pytestmark = pytest.mark.serving

#: More than a process may have open by default.
SILENT, SLOW = 1_100, 100
#: A hard limit of open files, and more connections than that.
FILES_MAX, MORE_THAN_THAT = 600, 700
AT_ONCE = 30


@contextlib.contextmanager
def opened(agent: RunningAgent, count: int) -> Iterator[list[socket.socket]]:
    """TCP connections without a byte of TLS."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection(("127.0.0.1", agent.port), timeout=30)) for _ in range(count)
        ]


def ended(connections: list[socket.socket]) -> Callable[[], bool]:
    """Whether the other side has ended each of them."""

    def look() -> bool:
        poll = select.poll()
        for one in connections:
            poll.register(one, select.POLLIN | select.POLLHUP)
        return len(poll.poll(0)) == len(connections)

    return look


def scored(agent: RunningAgent) -> int:
    """The status for a client that comes now."""
    trust = ssl.create_default_context(cafile=str(agent.certificate))
    with httpx.Client(base_url=str(agent.client.base_url), verify=trust, timeout=30, trust_env=False) as client:
        return client.post(INFER, headers=BEARER, json={}).status_code


def test_clients_that_say_nothing_are_cut_off_and_others_served(scoring: RunningAgent) -> None:
    envoy = scoring.envoy()
    with opened(scoring, SILENT) as silent, contextlib.ExitStack() as stack:
        slow = [stack.enter_context(connected(scoring)) for _ in range(SLOW)]
        for connection in slow:
            connection.sendall(HEAD.encode())
        assert [scored(scoring) for _ in range(20)] == [200] * 20
        eventually(ended(silent))
        eventually(ended(list(slow)))
    assert scoring.envoy() == envoy


def test_more_connections_than_descriptors_end_nobody(make_agent: MakeAgent) -> None:
    """Where the administrator allows few. Envoy ends when it gets no descriptor for a connection to
    an instance."""
    agent = make_agent()
    agent.program = (
        "sh",
        "-c",
        f'ulimit -n {FILES_MAX} && exec "$@"',
        "sh",
        sys.executable,
        "-m",
        "amphitrite.dataplane",
    )
    with Upstream("blue") as upstream:
        agent.start()
        agent.put_in_force(table(1, [cluster("blue", [upstream])], [("blue", 100)]))
        assert agent.client.post(INFER, headers=BEARER, json={}).status_code == 200
        envoy = agent.envoy()
        head = [(":method", "POST"), (":path", INFER), (":scheme", "https"), (":authority", "x"), *BEARER.items()]
        with Http2("127.0.0.1", agent.port) as connected_before, opened(agent, MORE_THAN_THAT) as silent:
            # At once, so that there are new connections to the instance.
            answers = connected_before.answers([head] * AT_ONCE, b"{}")
            assert [answer.get(":status") for answer in answers] == ["200"] * AT_ONCE
            eventually(ended(silent))
        assert scored(agent) == 200
        assert agent.envoy() == envoy
