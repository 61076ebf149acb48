"""One running product for the tests that only use it, with two deployments of two versions of a tiny model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .models import adding, broken
from .product import Product, running


@pytest.fixture(scope="session")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``one``, ``two``, ``three`` add that number; ``broken`` cannot be loaded."""
    root = tmp_path_factory.mktemp("repositories")
    for index, name in enumerate(("one", "two", "three"), start=1):
        adding(root / name, index)
    broken(root / "broken")
    return root


def register(product: Product, repositories: Path) -> None:
    for version, name in enumerate(("one", "two", "three", "broken"), start=1):
        path = str(repositories / name)
        product.run("model", "create", "-n", "tiny", "-v", str(version), "-t", "triton_model", "-p", path)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, repositories: Path) -> Iterator[Product]:
    """Endpoint ``cats`` with blue (+1) and green (+2), all traffic on blue. Tests leave it as they found it. Images
    called ``triton-cc`` are Triton there."""
    for product in running(tmp_path_factory.mktemp("shared"), ML_LOCAL_TRITON_IMAGES="azureml-examples/triton-cc"):
        register(product, repositories)
        product.endpoint()
        product.deploy("blue", "tiny:1", "--all-traffic")
        product.deploy("green", "tiny:2")
        yield product


@pytest.fixture
def fresh(tmp_path: Path, repositories: Path) -> Iterator[Product]:
    """A running product of the test's own, with the models registered and nothing else."""
    for product in running(tmp_path):
        register(product, repositories)
        yield product
