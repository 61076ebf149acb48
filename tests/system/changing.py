"""Everything that may change while three kinds of clients ask: kept connections, new ones, and
streams.

Decides what "no request is lost" is said of: the load, the kinds of changes, how often each is made
and in which order. Must not know what is thought of a lost one.
"""

from __future__ import annotations

import shutil
import ssl
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from amphitrite.controlplane.auth import certificates
from amphitrite.controlplane.settings.home import Home
from amphitrite.dataplane.machine import processes

from ..load.background import Client, Load, load
from ..waiting import wait_until
from .models import INFER, REQUEST, adding
from .product import Product

#: In a million requests.
_CHANGES = {"traffic": 1000, "replace": 100, "scale": 100, "certificate": 10, "key": 10, "router": 5}
_LEAST = {"traffic": 20, "replace": 2, "scale": 2, "certificate": 1, "key": 1, "router": 1}


@dataclass(frozen=True)
class Shape:
    """``requests``: of all clients together, at least. ``changes``: how many of each kind.
    ``think_ms``: a pause after each answer, so that the machine's cores are also there for the
    changes, which take the time."""

    requests: int
    changes: Mapping[str, int]
    think_ms: float

    @classmethod
    def of(cls, requests: int) -> Shape:
        """With its part of the changes that a million is claimed of. With 4 ms the million takes
        about as long."""
        changes = {name: max(_LEAST[name], round(requests * n / 1_000_000)) for name, n in _CHANGES.items()}
        return cls(requests, changes, think_ms=5.0 if requests <= 5000 else 4.0)

    def order(self) -> list[str]:
        """The changes as they are made, each kind spread evenly."""
        return [name for _, name in sorted(((i + 0.5) / n, name) for name, n in self.changes.items() for i in range(n))]


class Changing:
    """One product, and how each kind of change is made. ``done`` counts them, ``took_s`` adds up
    their time."""

    def __init__(self, product: Product) -> None:
        self._product = product
        self.done: Counter[str] = Counter()
        self.took_s: dict[str, float] = {}
        self._versions = {"blue": 1, "green": 1}
        self._counts = {"blue": 1, "green": 1}

    def make(self, kind: str) -> None:
        changes: dict[str, Callable[[int], None]] = {
            "traffic": self._traffic,
            "replace": self._replace,
            "scale": self._scale,
            "certificate": self._certificate,
            "key": self._key,
            "router": self._router,
        }
        began = time.monotonic()
        changes[kind](self.done[kind])
        self.done[kind] += 1
        self.took_s[kind] = self.took_s.get(kind, 0.0) + time.monotonic() - began

    def _traffic(self, number: int) -> None:
        share = 10 * (number % 11)
        self._product.put_traffic("cats", {"blue": share, "green": 100 - share})

    def _replace(self, number: int) -> None:
        name = ("blue", "green")[number % 2]
        self._versions[name] = 3 - self._versions[name]
        self._update(name)

    def _scale(self, number: int) -> None:
        self._counts["green"] = 3 - self._counts["green"]
        self._update("green")

    def _update(self, name: str) -> None:
        model, count = f"both:{self._versions[name]}", self._counts[name]
        self._product.deploy(name, model, verb="update", instance_count=count)

    def _certificate(self, number: int) -> None:
        """By the product's own code; for one more name, since the present one is good for weeks."""
        shown = ssl.get_server_certificate(self._product.scoring)
        certificates.ensure(Home(self._product.home), ("127.0.0.1", f"renewal-{number}.localhost"), time.time())
        wait_until(lambda: ssl.get_server_certificate(self._product.scoring) != shown, "the new certificate is shown")

    def _key(self, number: int) -> None:
        """The load uses the other one."""
        before = self._product.keys()
        self._product.run("online-endpoint", "regenerate-keys", "-n", "cats", "--key-type", "primary")
        assert self._product.keys()[0] != before[0]

    def _router(self, number: int) -> None:
        """Its Envoy is of an older release, as far as the next agent can tell."""
        before = self._product.outdate_envoy()
        self._product.kill(self._product.pid("dataplane/agent.json"))
        record = self._product.home / "dataplane" / "envoy.json"
        wait_until(lambda: processes.read(record) not in (None, before), "another Envoy runs")


def through(product: Product, work: Path, shape: Shape) -> tuple[Load, Changing]:
    """All changes of ``shape`` under load, on a product that has no endpoint yet. It is left with
    ``cats``, whose deployments blue and green serve a version of the model ``both``: of ``tiny``
    and of the stream ``ticker``."""
    for version in (1, 2):
        root = adding(work / str(version), version)
        shutil.copytree(Path(__file__).parent / "ticker", root / "ticker")
        product.run("model", "create", "-n", "both", "-v", str(version), "-t", "triton_model", "-p", str(root))
    product.endpoint()
    product.deploy("blue", "both:1", "--all-traffic")
    product.deploy("green", "both:1")
    think = shape.think_ms
    clients = (
        Client("kept", INFER, REQUEST, connections=4, think_ms=think),
        Client("anew", INFER, REQUEST, connections=2, think_ms=think, headers=("Connection: close",)),
        Client("stream", "/endpoints/cats/v2/models/ticker/generate_stream", b'{"count":20}', 2, expect='"left":0'),
    )
    changing = Changing(product)
    url, key = f"https://127.0.0.1:{product.scoring_port}", product.keys()[1]
    with load(url, product.ca_file, key, work / "load", clients, at_least=shape.requests) as seen:
        for kind in shape.order():
            changing.make(kind)
    return seen, changing
