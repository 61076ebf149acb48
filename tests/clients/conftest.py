"""The endpoints that every client reaches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .served import Served, serve


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    yield from serve(tmp_path_factory.mktemp("clients"))
