"""Everything that may change while three kinds of clients ask (see ``changing``). None of them
fails.

``AMPHITRITE_LOAD_REQUESTS`` sets how many requests are sent at least (default 5,000); the number of
changes grows with it. ``pytest -s`` shows the counts. The whole of it, a million requests, is the
benchmark ``loss``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .changing import Shape, through
from .product import Product, running

pytestmark = [pytest.mark.serving, pytest.mark.early]

SHAPE = Shape.of(int(os.environ.get("AMPHITRITE_LOAD_REQUESTS", "5000")))


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Product]:
    """In which nothing is."""
    yield from running(tmp_path)


def test_no_request_is_lost(product: Product, tmp_path: Path) -> None:
    seen, changing = through(product, tmp_path, SHAPE)
    print(f"{seen.requests} requests through {dict(changing.done)}, which took {changing.took_s}")
    for name, result in seen.results.items():
        print(name, result)
    assert seen.failed == {}
    assert seen.requests >= SHAPE.requests
    assert dict(changing.done) == SHAPE.changes
    assert set(seen.results["kept"]["deployments"]) == {"blue", "green"}
