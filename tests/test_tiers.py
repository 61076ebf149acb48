"""In a quick run nothing heavy starts, whatever a test does: it fails, and names the marker."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from amphitrite.dataplane.triton import installation
from amphitrite.schemas.errors import Error

from . import postgresql, tiers
from .cluster import node
from .helm import chart
from .sdk import environments


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """This is a quick run, until the test ends."""
    for name in ("ENVOY", "TRITON_SERVER", "AMPHITRITE_TEST_QUICK"):
        monkeypatch.setenv(name, "")
    tiers.begin()


@pytest.mark.parametrize(
    ("marker", "start"),
    [
        ("postgresql", postgresql.server.__wrapped__),
        ("postgresql", postgresql.own_server),
        ("cluster", lambda: node.running().__enter__()),
        ("helm", chart.binary.__wrapped__),
        ("sdk", environments.provide),
    ],
)
def test_what_is_started_asks_for_its_marker(quick: None, marker: str, start: Callable[[], object]) -> None:
    with pytest.raises(pytest.fail.Exception, match=f"the marker '{marker}' is missing"):
        start()


def test_the_product_finds_neither_envoy_nor_triton(quick: None) -> None:
    assert "the marker 'serving' is missing" in os.environ["ENVOY"]
    with pytest.raises(Error, match="the marker 'serving' is missing"):
        installation.locate(os.environ)
