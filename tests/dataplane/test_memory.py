"""Bodies that are held, more of them than Envoy may have memory: those clients are cut off, others
are served."""

from __future__ import annotations

import contextlib
import sys
import threading

import psutil
import pytest

from .agents import BEARER, INFER, cluster, serves, table
from .conftest import MakeAgent
from .http2 import Http2
from .upstream import Upstream

pytestmark = pytest.mark.serving

MIB = 1024 * 1024
#: For its heap. Code and stacks, and what comes between two looks at the heap, are beside it.
HEAP, BESIDE = 512 * MIB, 384 * MIB
CONNECTIONS, STREAMS, BODY = 2, 100, 14 * MIB
PROGRAM = f"""
from amphitrite.dataplane.machine import cgroup_limits
cgroup_limits.machine_heap_bytes = lambda: {HEAP}
import runpy
runpy.run_module("amphitrite.dataplane", run_name="__main__")
"""


def hold(port: int) -> None:
    """As many bodies as a connection may have, none of them complete, in pieces by turns."""
    head = [(":method", "POST"), (":path", INFER), (":scheme", "https"), (":authority", "x"), *BEARER.items()]
    with Http2("127.0.0.1", port, timeout_s=2) as client, contextlib.suppress(OSError):
        streams = []
        for _ in range(STREAMS):
            streams.append(client.h2.get_next_available_stream_id())
            client.h2.send_headers(streams[-1], head)
        client.flush()
        sent = dict.fromkeys(streams, 0)
        while not client.ended and sent:
            moved = False
            for stream in list(sent):
                try:
                    size = min(client.h2.local_flow_control_window(stream), 16_384, BODY - sent[stream])
                    if size > 0:
                        client.h2.send_data(stream, b"x" * size)
                        sent[stream] += size
                        moved = True
                    if sent[stream] >= BODY:
                        del sent[stream]
                except Exception:  # Ended by the other side: what is wanted here.
                    del sent[stream]
            client.flush()
            if not moved:
                client.received()


def test_more_than_envoy_may_have(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.program = (sys.executable, "-c", PROGRAM)
    with Upstream("blue") as upstream:
        agent.start()
        agent.put_in_force(table(1, [cluster("blue", [upstream])], [("blue", 100)]))
        envoy, most, answered = agent.envoy(), 0, 0
        threads = [threading.Thread(target=hold, args=(agent.port,)) for _ in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            most = max(most, psutil.Process(envoy.pid).memory_info().rss)
            assert serves(agent)
            answered += 1
        print(most // MIB, answered)
        assert answered
        assert HEAP // 4 < most < HEAP + BESIDE
        assert agent.envoy() == envoy
