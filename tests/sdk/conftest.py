"""One running product for all releases of the SDK, and what each of them found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..system.product import Product, running
from . import runs


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    yield from running(tmp_path_factory.mktemp("sdk"), ML_LOCAL_TRITON_IMAGES="azureml-examples/triton-cc")


@pytest.fixture(scope="session")
def found(product: Product, tmp_path_factory: pytest.TempPathFactory) -> runs.Found:
    """Release -> step -> what became of it."""
    return runs.run(product, Path(tmp_path_factory.mktemp("steps")))
