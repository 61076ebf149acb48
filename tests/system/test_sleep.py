"""A deployment without instances, in the whole product: paused, asleep, and woken by requests.

``AMPHITRITE_SLEEP_CYCLES`` sets how often it sleeps and wakes while processes are killed (default
2). ``pytest -s`` shows what the clients saw.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ..waiting import wait_until
from .conftest import register
from .models import INFER, REQUEST
from .product import Product, running
from .sleeping import SETTINGS, Seen, ask, asleep, through, wakes

pytestmark = pytest.mark.serving

CYCLES = int(os.environ.get("AMPHITRITE_SLEEP_CYCLES", "2"))


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory, repositories: Path) -> Iterator[Product]:
    """Endpoint ``cats`` with blue, which may sleep."""
    for product in running(tmp_path_factory.mktemp("sleeping")):
        register(product, repositories, 1)
        product.endpoint()
        product.deploy("blue", "tiny:1", "--all-traffic", **SETTINGS)
        yield product


def test_a_hundred_requests_at_once_wake_it_once(product: Product) -> None:
    wait_until(lambda: asleep(product), "it sleeps")
    assert product.instances() == []
    before, seen, lock, key = wakes(product), Seen(), threading.Lock(), product.keys()[0]
    with ThreadPoolExecutor(100) as pool:
        for _ in range(100):
            pool.submit(ask, product, key, seen, lock)
    print(f"the longest wait: {seen.longest_s:.1f} s")
    assert seen.answers == Counter({200: 100})
    assert wakes(product) - before == 1


def test_a_paused_deployment_answers_503_until_it_is_resumed(product: Product) -> None:
    key = product.keys()[0]
    for _ in range(2):
        product.run("online-deployment", "pause", "-n", "blue", "-e", "cats", "--reason", "a test")
    assert product.instances() == []
    answer = product.request(INFER, key=key, body=REQUEST)
    assert answer.status == 503
    assert "DeploymentPaused" in answer.body.decode()
    shown = product.json("online-deployment", "show", "-n", "blue", "-e", "cats")
    assert shown["status"]["phase"] == "Paused"
    product.run("online-deployment", "resume", "-n", "blue", "-e", "cats", "--no-wait")
    # The command returns before the proxies know of it.
    wait_until(lambda: product.request(INFER, key=key, body=REQUEST).status == 200, "it serves")
    causes = [row["cause"] for row in product.json("online-deployment", "history", "-n", "blue", "-e", "cats")]
    assert causes[:2] == ["resume", "pause"]


def test_nothing_is_lost_while_it_sleeps_and_wakes_and_processes_are_killed(product: Product) -> None:
    seen = through(product, CYCLES)
    print(f"{CYCLES} cycles, {wakes(product)} wakes: {seen}")
    assert seen.lost == 0
