"""Seconds of mixed abuse beside clients of another endpoint: none of them fails, and no memory is
kept. The benchmark ``abuse`` does the same for longer, and measures."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..waiting import wait_until
from . import abusing
from .product import Product, running

pytestmark = pytest.mark.serving

SECONDS = float(os.environ.get("AMPHITRITE_ABUSE_S", "8"))
#: What each may have grown by afterwards, in bytes: caches that are as full as they get. Python
#: 3.10 keeps what connections took until it collects garbage.
GROWTH = {"Envoy": 128 * 1024 * 1024, "Triton, all": 128 * 1024 * 1024, "control plane": 160 * 1024 * 1024}
#: Each was made, and was answered like this.
ANSWERED = ("wrong key: 401", "nested JSON: 400", "form: 424")
MADE = ("silent, scoring port", "silent, control plane's port", "slow heads", "slow bodies", *ANSWERED)


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    root = tmp_path_factory.mktemp("abuse")
    for one in running(root):
        abusing.prepare(one, root)
        yield one


def test_nobody_else_notices_and_no_memory_is_kept(product: Product, tmp_path: Path) -> None:
    before = abusing.clients_of_another(product, tmp_path / "before", 1, attacked=False)
    instances, envoy = product.instances(), product.pid("dataplane/envoy.json")
    during = abusing.clients_of_another(product, tmp_path / "during", SECONDS, attacked=True)
    assert during.load.failed == {}
    assert during.load.requests > 0
    assert {name for name in MADE if not during.made[name]} == set(), during.made
    assert any(name.startswith("protobuf bomb: ") for name in during.made), during.made
    assert (product.instances(), product.pid("dataplane/envoy.json")) == (instances, envoy)

    def returned() -> bool:
        now = abusing.memory(product)
        return all(now[name] - most < GROWTH[name] for name, most in before.memory.items())

    wait_until(returned, "what the abuse needed is given back")
