"""Requests to a deployment that sleeps: held in a real Envoy, and answered when it has woken."""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import httpx
import psutil
import pytest

from amphitrite.dataplane.table.routing_table import Address, Hold, Route, RoutingTable

from .agents import BEARER, INFER, KEY, RunningAgent, cluster, eventually, table
from .conftest import MakeAgent
from .grpc_upstream import SERVICE, GrpcUpstream
from .minting import ISSUERS, binding, mint
from .upstream import Upstream

pytestmark = pytest.mark.serving

HELD = int(os.environ.get("AMPHITRITE_HELD_REQUESTS", "40"))


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream("blue") as one:
        one.release()
        yield one


def awake(version: int, upstreams: Iterable[Upstream], *, hold: Hold = "ready", **limits: Any) -> RoutingTable:
    return with_target(table(version, [cluster("blue", upstreams, **limits)], [("blue", 100)]), hold=hold)


def asleep(version: int, *, hold: Hold = "now", **target: Any) -> RoutingTable:
    known = with_target(table(version, [cluster("blue", ())], [("blue", 100)]), hold=hold, cluster=None, **target)
    return replace(known, clusters=())


def with_target(of: RoutingTable, **values: Any) -> RoutingTable:
    (route,) = of.routes
    (target,) = route.targets
    # A table must not contradict itself in between.
    return replace(of, routes=(replace(route, targets=(replace(target, **values),)),))


@contextmanager
def sleeping(make_agent: MakeAgent, version: int = 1, **target: Any) -> Iterator[RunningAgent]:
    agent = make_agent()
    agent.start()
    agent.put_in_force(asleep(version, **target))
    yield agent


@contextmanager
def in_background(agent: RunningAgent, count: int, **request: Any) -> Iterator[list[Future[httpx.Response]]]:
    """So many POSTs at once, each on a connection of its own."""

    def post() -> httpx.Response:
        context = ssl.create_default_context(cafile=str(agent.certificate))
        with httpx.Client(verify=context, timeout=60, trust_env=False) as client:
            return client.post(f"https://127.0.0.1:{agent.port}{INFER}", headers=BEARER, **request)

    with ThreadPoolExecutor(count) as pool:
        yield [pool.submit(post) for _ in range(count)]


def held(agent: RunningAgent, count: int) -> None:
    """Until Envoy holds so many requests."""
    eventually(lambda: in_flight(agent) >= count)


def in_flight(agent: RunningAgent) -> int:
    """The requests that Envoy asks the agent about: each that is held is one."""
    socket = httpx.HTTPTransport(uds=str(agent.run / "envoy-admin.sock"))
    with httpx.Client(transport=socket, base_url="http://envoy", trust_env=False) as client:
        found = client.get("/clusters", params={"format": "json", "filter": "^holds$"}).json()["cluster_statuses"]
    stats = [stat for one in found for host in one.get("host_statuses", ()) for stat in host["stats"]]
    return sum(int(stat.get("value", 0)) for stat in stats if stat["name"] == "rq_active")


def test_requests_are_held_and_answered_when_it_has_woken(make_agent: MakeAgent, upstream: Upstream) -> None:
    with sleeping(make_agent) as agent, in_background(agent, 8, content=b"x" * 300_000) as answers:
        held(agent, 8)
        agent.put_in_force(awake(2, [upstream]))
        assert [answer.result().status_code for answer in answers] == [200] * 8
        assert len(upstream.scored()) == 8


def test_a_request_is_held_no_longer_than_it_may_take(make_agent: MakeAgent) -> None:
    with sleeping(make_agent, timeout_s=0.3) as agent:
        answer = agent.client.post(INFER, headers=BEARER)
        assert answer.status_code == 408
        assert "was asleep and could not answer within 300 ms" in answer.json()["error"]


def test_nobody_without_a_key_wakes_it_nor_does_a_health_check(make_agent: MakeAgent) -> None:
    with sleeping(make_agent) as agent:
        assert agent.client.post(INFER).status_code == 401
        for path in ("v2/health/ready", "v2/health/live", "v2/models/m/ready"):
            assert agent.client.get(f"/endpoints/images/{path}", headers=BEARER).status_code == 200
        assert in_flight(agent) == 0


def test_a_paused_one_answers_at_once_and_so_do_its_held_requests(make_agent: MakeAgent) -> None:
    with sleeping(make_agent) as agent, in_background(agent, 2) as answers:
        held(agent, 2)
        agent.put_in_force(asleep(2, hold="never", paused=True))
        for answer in (*(one.result() for one in answers), agent.client.post(INFER, headers=BEARER)):
            assert answer.status_code == 503
            assert "DeploymentPaused: deployment 'blue' is paused" in answer.json()["error"]


def test_whoever_leaves_is_forgotten(make_agent: MakeAgent) -> None:
    with sleeping(make_agent) as agent:
        with pytest.raises(httpx.ReadTimeout):
            agent.client.post(INFER, headers=BEARER, timeout=0.5)
        eventually(lambda: in_flight(agent) == 0)


def test_what_is_left_of_the_time_is_the_models(make_agent: MakeAgent, upstream: Upstream) -> None:
    with sleeping(make_agent, timeout_s=3.0) as agent, in_background(agent, 1) as answers:
        held(agent, 1)
        upstream.hold()  # Paths with "held" wait; this one does not.
        agent.put_in_force(with_target(awake(2, [upstream]), timeout_s=3.0))
        assert answers[0].result().status_code == 200
        (request,) = upstream.scored()
        assert 0 <= int(request["headers"]["amphitrite-held-ms"]) < 3000


def test_the_agent_is_killed_while_requests_are_held(make_agent: MakeAgent, upstream: Upstream) -> None:
    with sleeping(make_agent) as agent, in_background(agent, 5, content=b"x" * 50_000) as answers:
        held(agent, 5)
        agent.kill()

        agent.start()
        agent.put_in_force(awake(2, [upstream]))
        assert [answer.result().status_code for answer in answers] == [200] * 5


def test_more_than_may_wait_are_told_to_come_back(make_agent: MakeAgent, upstream: Upstream) -> None:
    """All of them are answered: those that wait with a body, after a limit of two at once."""
    with sleeping(make_agent) as agent, in_background(agent, 40, content=b"x" * 1000) as answers:
        held(agent, 40)
        agent.put_in_force(awake(2, [upstream], max_requests=2))
        assert [answer.result().status_code for answer in answers] == [200] * 40


@pytest.mark.parametrize("sequences", [False, True])
def test_load_while_it_sleeps_and_wakes_loses_nothing(
    make_agent: MakeAgent, upstream: Upstream, sequences: bool
) -> None:
    """The routes change under the requests, also under those whose body is being awaited."""
    agent = make_agent()
    agent.start()
    agent.put_in_force(with_target(awake(1, [upstream]), sequences=sequences))
    ends, statuses = threading.Event(), []

    def load() -> None:
        context = ssl.create_default_context(cafile=str(agent.certificate))
        with httpx.Client(verify=context, timeout=60, trust_env=False) as client:
            while not ends.is_set():
                answer = client.post(f"https://127.0.0.1:{agent.port}{INFER}", headers=BEARER, content=slowly())
                statuses.append((answer.status_code, answer.text if answer.status_code != 200 else ""))

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for version in range(2, 12, 2):
        agent.put_in_force(with_target(asleep(version), sequences=sequences))
        agent.control_plane.wait_for(drained_version=version)
        agent.put_in_force(with_target(awake(version + 1, [upstream]), sequences=sequences))
    ends.set()
    for thread in threads:
        thread.join()
    assert set(statuses) == {(200, "")}


def slowly() -> Iterator[bytes]:
    for _ in range(3):
        yield b'{"x": 1}'
        threading.Event().wait(0.02)


def test_what_is_held_takes_no_more_memory_than_connections_may_buffer(
    make_agent: MakeAgent, upstream: Upstream
) -> None:
    """``AMPHITRITE_HELD_REQUESTS`` of a megabyte each (default 40); ``pytest -s`` shows it."""
    with sleeping(make_agent) as agent:
        envoy = psutil.Process(agent.envoy().pid)
        before = envoy.memory_info().rss
        statuses = asyncio.run(_held_bodies(agent, upstream, lambda: print_memory(envoy, before)))
        assert statuses == [200] * HELD


def print_memory(envoy: psutil.Process, before: int) -> None:
    grown = envoy.memory_info().rss - before
    print(f"{HELD} held requests of 1 MiB: {before / 2**20:.0f} + {grown / 2**20:.0f} MiB")
    assert grown < HELD * 3 * 2**20


async def _held_bodies(agent: RunningAgent, upstream: Upstream, while_held: Callable[[], None]) -> list[int]:
    context = ssl.create_default_context(cafile=str(agent.certificate))
    head = f"POST {INFER} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {KEY}\r\ncontent-length: {2**20}\r\n"

    async def post() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", agent.port, ssl=context)
        writer.write(head.encode() + b"content-type: application/octet-stream\r\nconnection: close\r\n\r\n")
        for _ in range(16):
            writer.write(bytes(2**16))
            await writer.drain()
        status = int((await reader.readline()).split()[1])
        await reader.read()
        writer.close()
        return status

    posts = [asyncio.create_task(post()) for _ in range(HELD)]
    await asyncio.to_thread(held, agent, HELD)
    while_held()
    await asyncio.to_thread(agent.put_in_force, awake(2, [upstream]))
    return await asyncio.gather(*posts)


def test_calls_in_grpc_and_requests_with_tokens_are_held_too(
    make_agent: MakeAgent, upstream: Upstream, certificate: tuple[Path, Path]
) -> None:
    """One agent for all: its endpoints are asleep, one with keys and one with tokens."""
    by_keys = asleep(1).routes[0]
    by_tokens = Route("tokens", (), by_keys.targets, by_keys.split, auth="aml_token", binding=binding("tokens"))
    both = replace(asleep(1), routes=(by_keys, by_tokens), issuers=ISSUERS)
    with GrpcUpstream("blue") as called:
        agent = make_agent()
        agent.start()
        agent.put_in_force(both)
        woken = awake(2, [upstream])
        (reached,) = woken.clusters
        address = Address("127.0.0.1", upstream.port, called.port)
        routes = (woken.routes[0], replace(by_tokens, targets=woken.routes[0].targets))
        cluster_of_both = replace(reached, addresses=(address,))
        trust = grpc.ssl_channel_credentials(certificate[0].read_bytes())
        metadata = (("amphitrite-endpoint", "images"), ("authorization", BEARER["authorization"]))
        with ThreadPoolExecutor(3) as pool, grpc.secure_channel(f"127.0.0.1:{agent.port}", trust) as channel:
            checks = channel.unary_unary(f"/{SERVICE}/ServerReady")
            with pytest.raises(grpc.RpcError) as refused:
                checks(b"", metadata=metadata, timeout=20)
            assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
            unary = pool.submit(channel.unary_unary(f"/{SERVICE}/ModelInfer"), b"x", 20, metadata)
            stream = pool.submit(
                lambda: list(channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")(iter([b"a", b"b"]), 20, metadata))
            )
            shown = {"authorization": f"Bearer {mint()}"}
            post = pool.submit(agent.client.post, INFER.replace("images", "tokens"), headers=shown)
            held(agent, 3)
            agent.put_in_force(replace(woken, routes=routes, clusters=(cluster_of_both,), issuers=ISSUERS))
            assert b"ModelInfer" in unary.result()
            assert stream.result() == [b"a", b"b"]
            assert post.result().status_code == 200
