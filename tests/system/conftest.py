"""Running products for the tests that only use them: one with two versions of a tiny model, one
with each kind of model, which also has addresses by host name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .models import adding, broken, model_types
from .product import Product, running
from .stock import DOMAIN, Scoring


@pytest.fixture(scope="session")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``one``, ``two``, ``three`` add that number; ``broken`` cannot be loaded."""
    root = tmp_path_factory.mktemp("repositories")
    for index, name in enumerate(("one", "two", "three"), start=1):
        adding(root / name, index)
    broken(root / "broken")
    return root


def register(product: Product, repositories: Path, count: int = 4) -> None:
    """The first ``count`` of them, as versions of ``tiny``."""
    for version, name in enumerate(("one", "two", "three", "broken")[:count], start=1):
        path = str(repositories / name)
        product.run("model", "create", "-n", "tiny", "-v", str(version), "-t", "triton_model", "-p", path)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, repositories: Path) -> Iterator[Product]:
    """Endpoint ``cats`` with blue (+1) and green (+2), all traffic on blue. Tests leave it as they
    found it. Images called ``triton-cc`` are Triton there."""
    for product in running(tmp_path_factory.mktemp("shared"), ML_LOCAL_TRITON_IMAGES="azureml-examples/triton-cc"):
        register(product, repositories)
        product.endpoint()
        product.deploy("blue", "tiny:1", "--all-traffic")
        product.deploy("green", "tiny:2")
        yield product


@pytest.fixture(scope="session")
def scoring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scoring]:
    """For tests that only ask; see there for what it serves."""
    root = tmp_path_factory.mktemp("types")
    blue, sums = model_types(root / "repository"), Path(__file__).parent / "sequences"
    # Some models tell a test by files of its own what they do.
    told = str(tmp_path_factory.getbasetemp())
    for product in running(root, ML_SCORING_DOMAIN=DOMAIN, ML_ISOLATION_WRITE=told):
        product.endpoint("types")
        for name, files in (("blue", blue), ("sums", sums)):
            product.run("model", "create", "-n", name, "-v", "1", "-t", "triton_model", "-p", str(files))
        # The ensemble's 50 ms of waiting and the twins' meeting leave room below this even on a
        # busy machine.
        settings = {"request_timeout_ms": 60_000, "max_concurrent_requests_per_instance": 50}
        product.deploy("blue", "blue:1", "--all-traffic", endpoint="types", request_settings=settings)
        product.deploy("sums", "sums:1", endpoint="types", instance_count=2, request_settings=settings)
        yield Scoring(product, product.keys("types")[0])
