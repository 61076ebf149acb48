"""PostgreSQL and an object store instead of a file and a directory: the same product on one
machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .. import postgresql, s3
from ..waiting import wait_until
from .conftest import register
from .models import INFER, REQUEST
from .product import Product

pytestmark = [pytest.mark.serving, pytest.mark.postgresql, pytest.mark.early]


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Product]:
    """A product whose state and models lie outside its home."""
    bucket = s3.bucket(monkeypatch)
    with postgresql.database() as url:
        product = Product(tmp_path)
        product.environment |= {**bucket.environment, "ML_DATABASE_URL": url, "ML_MODELS_URL": bucket.url}
        try:
            product.start()
            yield product
        finally:
            product.destroy()


def test_a_model_serves_and_does_again_after_a_stop(elsewhere: Product, repositories: Path, tmp_path: Path) -> None:
    register(elsewhere, repositories, 1)
    elsewhere.endpoint()
    elsewhere.deploy("blue", "tiny:1", "--all-traffic")
    key = elsewhere.keys()[0]
    assert elsewhere.request(INFER, key=key, body=REQUEST).status == 200
    assert not (elsewhere.home / "amphitrite.db").exists()

    # A second control plane would decide about the same instances.
    other = Product(tmp_path / "other")
    other.environment |= {
        name: value
        for name, value in elsewhere.environment.items()
        if name.startswith(("AWS_", "ML_DATABASE", "ML_MODELS"))
    }
    try:
        started = ("server", "start", "-d", "--port", str(other.port), "--scoring-port", str(other.scoring_port))
        refused = other.run(*started, "--only-show-errors", check=False)
        assert refused.returncode == 1 and refused.stderr.startswith("error: "), refused.stderr
    finally:
        other.destroy()

    elsewhere.run("server", "stop")
    assert elsewhere.left_over() == []
    elsewhere.start()
    wait_until(lambda: elsewhere.request(INFER, key=key, body=REQUEST).status == 200, "serving after a restart")
    assert elsewhere.keys()[0] == key
