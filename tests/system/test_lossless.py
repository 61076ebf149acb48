"""Everything that may change while three kinds of clients ask: kept connections, new ones, and streams. None fails.

``AMPHITRITE_LOAD_REQUESTS`` sets how many requests are sent at least (default 5,000; the product's claim is 1,000,000
through 1,000 traffic changes, 100 replacements, 100 changes of scale, 10 certificates, 10 keys and 5 routers). The
number of changes grows with it. ``pytest -s`` shows the counts.
"""

from __future__ import annotations

import datetime
import os
import shutil
import ssl
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from amphitrite.controlplane import certificates
from amphitrite.controlplane.home import Home
from amphitrite.dataplane import processes

from ..load.background import Client, load
from .models import REQUEST, adding
from .product import Product, wait_until

pytestmark = pytest.mark.serving

REQUESTS = int(os.environ.get("AMPHITRITE_LOAD_REQUESTS", "5000"))
#: In the short form the machine's cores are also there for the changes.
THINK_MS = 5.0 if REQUESTS <= 5000 else 0.0
#: change -> (how often in a million requests, at least).
CHANGES = {
    "traffic": (1000, 20),
    "replace": (100, 2),
    "scale": (100, 2),
    "certificate": (10, 1),
    "key": (10, 1),
    "router": (5, 1),
}


def schedule(requests: int) -> list[str]:
    """The changes in the order in which they are made, each kind spread evenly."""
    often = {name: max(least, round(requests * rate / 1_000_000)) for name, (rate, least) in CHANGES.items()}
    return [name for _, name in sorted(((i + 0.5) / n, name) for name, n in often.items() for i in range(n))]


class Changing:
    """One product, and how each kind of change is made. ``done`` counts them."""

    def __init__(self, product: Product) -> None:
        self._product = product
        self.done: Counter[str] = Counter()
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
        changes[kind](self.done[kind])
        self.done[kind] += 1

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
        certificates.ensure(Home(self._product.home), ("127.0.0.1", f"renewal-{number}.example"), time.time())
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


def test_no_request_is_lost(fresh: Product, tmp_path: Path) -> None:
    for version in (1, 2):
        root = adding(tmp_path / str(version), version)
        shutil.copytree(Path(__file__).parent / "ticker", root / "ticker")
        fresh.run("model", "create", "-n", "both", "-v", str(version), "-t", "triton_model", "-p", str(root))
    fresh.endpoint()
    fresh.deploy("blue", "both:1", "--all-traffic")
    fresh.deploy("green", "both:1")
    infer = "/endpoints/cats/v2/models/tiny/infer"
    clients = (
        Client("kept", infer, REQUEST, connections=4, think_ms=THINK_MS, at_least=REQUESTS),
        Client("anew", infer, REQUEST, connections=2, think_ms=THINK_MS, headers=("Connection: close",)),
        Client("stream", "/endpoints/cats/v2/models/ticker/generate_stream", b'{"count":20}', 2, expect='"left":0'),
    )
    changing = Changing(fresh)
    began = time.monotonic()
    url, key = f"https://127.0.0.1:{fresh.scoring_port}", fresh.keys()[1]
    with load(url, fresh.ca_file, key, tmp_path / "load", clients) as seen:
        for kind in schedule(REQUESTS):
            changing.make(kind)
    took = datetime.timedelta(seconds=round(time.monotonic() - began))
    print(f"{seen.requests} requests in {took} through {dict(changing.done)}")
    for name, result in seen.results.items():
        print(name, result)
    assert seen.failed == {}
    assert set(seen.results["kept"]["deployments"]) == {"blue", "green"}
