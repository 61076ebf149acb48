"""Which tests are quick: those without one of ``MARKERS``. ``make quick`` runs no others.

Decides what a quick run leaves out, and that a test without its marker fails in one. Must not know
how anything is started. The markers are described in pyproject.toml.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal

import pytest

Marker = Literal["serving", "postgresql", "cluster", "helm", "sdk", "slow"]
MARKERS: tuple[Marker, ...] = ("serving", "postgresql", "cluster", "helm", "sdk", "slow")
#: Set in a quick run, for its processes too.
_VARIABLE = "AMPHITRITE_TEST_QUICK"
#: Where the product looks first for Envoy and Triton: in a quick run there is nothing.
_PROGRAMS = ("ENVOY", "TRITON_SERVER")


def begin() -> None:
    """This process and those it starts belong to a quick run."""
    os.environ[_VARIABLE] = "1"
    os.environ.update(dict.fromkeys(_PROGRAMS, "none in a quick run: the marker 'serving' is missing"))


def split(items: Iterable[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The quick ones, and the others."""
    quick: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        (others if any(item.get_closest_marker(name) for name in MARKERS) else quick).append(item)
    return quick, others


def needs(marker: Marker) -> None:
    """Fails a quick test. For whatever starts what only tests with this marker may use."""
    if _VARIABLE in os.environ:
        pytest.fail(f"this is not a quick test: the marker {marker!r} is missing")
