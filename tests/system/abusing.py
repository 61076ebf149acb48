"""Everything at once that a hostile client may do, beside clients of another endpoint.

Decides the attacks, how often each is made, and what memory is read. Must not know how much of
either may be: see ``test_abuse`` and the benchmark ``abuse``.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from ..load.background import Client, Load, load
from ..load.closed_loop import Connection, NotHttp, request_bytes
from .models import INFER, REQUEST, adding
from .product import Product

#: Served beside the attacks, and what is attacked: a model, and one with sequences.
SERVED, ATTACKED, SEQUENCES = "dogs", "cats", "sums"
#: Connections that say nothing, to each of the two ports: more than a process may have open by
#: default. Heads and bodies that never end.
SILENT, SLOW_HEADS, SLOW_BODIES = 1_100, 100, 20
#: Requests with a wrong key in a second, and the connections by which they come: each request waits
#: for the answer to the one before it on its connection.
WRONG_KEYS, WRONG_KEY_CONNECTIONS = 1_000, 6
NESTED = b"[" * 1_000_000
#: A gRPC message with nothing but small fields.
BOMB = b"\0" + (8 * 1024 * 1024).to_bytes(4, "big") + b"\x50\x01" * (4 * 1024 * 1024)
FORM = b"a=" + b"x" * 4_000_000
_HEAD = f"POST {INFER} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {{key}}\r\n"
_PERIOD_S = 0.5


@dataclass
class Seen:
    """``load``: what the clients of the other endpoint saw. ``made``: how often each attack was
    made, and with which outcome. ``memory``: the most bytes of each process."""

    load: Load
    made: Counter[str] = field(default_factory=Counter)
    memory: dict[str, int] = field(default_factory=dict)


def prepare(product: Product, work: Path) -> None:
    """The three endpoints."""
    models = {"tiny": adding(work / "model", 1), "sums": Path(__file__).parent / "sequences"}
    for name, path in models.items():
        product.run("model", "create", "-n", name, "-v", "1", "-t", "triton_model", "-p", str(path))
    for endpoint, model in ((SERVED, "tiny:1"), (ATTACKED, "tiny:1"), (SEQUENCES, "sums:1")):
        product.endpoint(endpoint)
        product.deploy("blue", model, "--all-traffic", endpoint=endpoint)


def clients_of_another(product: Product, work: Path, seconds: float, *, attacked: bool) -> Seen:
    """What clients of SERVED see in that time, with the attacks or without."""
    clients = [
        Client("kept", INFER.replace(ATTACKED, SERVED), REQUEST, connections=2, think_ms=5),
        Client("anew", INFER.replace(ATTACKED, SERVED), REQUEST, think_ms=20, headers=("Connection: close",)),
    ]
    url, stop = f"https://127.0.0.1:{product.scoring_port}", threading.Event()
    with load(url, product.ca_file, product.keys(SERVED)[0], work, clients) as running:
        seen = Seen(running)
        with attacking(product, seen.made) if attacked else contextlib.nullcontext():
            watched = threading.Thread(target=lambda: _watch(product, seen.memory, stop))
            watched.start()
            stop.wait(seconds)
            stop.set()
            watched.join()
    return seen


def memory(product: Product) -> dict[str, int]:
    """Resident bytes, now."""
    return {
        "Envoy": _resident(product.pid("dataplane/envoy.json")),
        "control plane": _resident(product.pid("server.json")),
        "Triton, all": sum(_resident(one) for pid in product.instances() for one in (pid, *_children(pid))),
    }


def _children(pid: int) -> list[int]:
    """An instance may have processes of its own, or one around it."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    return []


def _resident(pid: int) -> int:
    with contextlib.suppress(psutil.NoSuchProcess):
        return int(psutil.Process(pid).memory_info().rss)
    return 0


def _watch(product: Product, most: dict[str, int], stop: threading.Event) -> None:
    while True:
        for name, size in memory(product).items():
            most[name] = max(size, most.get(name, 0))
        if stop.wait(_PERIOD_S):
            return


@contextlib.contextmanager
def attacking(product: Product, made: Counter[str]) -> Iterator[None]:
    """All of them until the block ends."""
    stop, key = threading.Event(), product.keys(ATTACKED)[0]
    sequences = product.keys(SEQUENCES)[0]
    grpc = {"Content-Type": "application/grpc", "TE": "trailers", "amphitrite-endpoint": SEQUENCES}
    json = {"Content-Type": "application/json"}
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    infer, method = INFER, "/inference.GRPCInferenceService/ModelInfer"

    def asks(name: str, path: str, key: str, body: bytes, headers: dict[str, str]) -> Callable[[], None]:
        def ask() -> None:
            made[f"{name}: {product.request(path, key=key, body=body, headers=headers).status}"] += 1

        return lambda: _again(ask, made, stop, _PERIOD_S)

    attacks: list[Callable[[], None]] = [
        lambda: _silent(product.scoring_port, "silent, scoring port", made, stop),
        lambda: _silent(product.port, "silent, control plane's port", made, stop),
        lambda: _slow(product, SLOW_HEADS, _HEAD.format(key=key), "slow heads", made, stop),
        lambda: _slow(
            product, SLOW_BODIES, _HEAD.format(key=key) + "Content-Length: 9999\r\n\r\n", "slow bodies", made, stop
        ),
        *[lambda: _wrong_keys(product, made, stop)] * WRONG_KEY_CONNECTIONS,
        asks("nested JSON", infer, key, NESTED, json),
        asks("form", infer, key, FORM, form),
        asks("protobuf bomb", method, sequences, BOMB, grpc),
    ]
    threads = [threading.Thread(target=attack) for attack in attacks]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _again(attack: Callable[[], None], made: Counter[str], stop: threading.Event, pause_s: float) -> None:
    """Whatever becomes of one, the next is made."""
    while not stop.is_set():
        try:
            attack()
        except (OSError, http.client.HTTPException, NotHttp) as exc:
            made[type(exc).__name__] += 1
        stop.wait(pause_s)


def _silent(port: int, name: str, made: Counter[str], stop: threading.Event) -> None:
    """As many TCP connections as ever; one that was ended makes room for the next."""
    with contextlib.ExitStack() as stack:

        def connect() -> None:
            for _ in range(SILENT):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
                made[name] += 1
                if stop.is_set():
                    return
            stop.wait(5)
            stack.close()

        _again(connect, made, stop, _PERIOD_S)


def _slow(product: Product, count: int, begun: str, name: str, made: Counter[str], stop: threading.Event) -> None:
    trust = ssl.create_default_context(cafile=str(product.ca_file))

    def connect() -> None:
        with contextlib.ExitStack() as stack:
            connections = []
            for _ in range(count):
                plain = stack.enter_context(socket.create_connection(product.scoring, timeout=10))
                connections.append(stack.enter_context(trust.wrap_socket(plain, server_hostname="127.0.0.1")))
                connections[-1].sendall(begun.encode())
                made[name] += 1
                if stop.is_set():
                    return
            for _ in range(5):
                for connection in connections:
                    connection.sendall(b"x")
                if stop.wait(1):
                    return

    _again(connect, made, stop, _PERIOD_S)


def _wrong_keys(product: Product, made: Counter[str], stop: threading.Event) -> None:
    trust = ssl.create_default_context(cafile=str(product.ca_file))
    url = f"https://127.0.0.1:{product.scoring_port}{INFER}"
    request = request_bytes(url, ["Authorization: Bearer wrong"], None)

    def ask() -> None:
        connection = Connection(*product.scoring, trust, 10)
        due = time.monotonic()
        try:
            # A request that is late is followed at once by the next, up to a second of them.
            while not stop.wait(max(due - time.monotonic(), 0)):
                made[f"wrong key: {connection.exchange(request).status}"] += 1
                due = max(due + WRONG_KEY_CONNECTIONS / WRONG_KEYS, time.monotonic() - 1)
        finally:
            connection.close()

    _again(ask, made, stop, _PERIOD_S)
