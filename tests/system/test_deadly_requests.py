"""Requests that end an instance, or that once did, with the real Triton and Envoy."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from amphitrite.dataplane.envoy.filters.nested_bodies import LOOKED_AT_BYTES

from ..waiting import wait_until
from .conftest import register
from .killing import LOST_REQUESTS
from .models import INFER, REQUEST
from .product import Product, running

pytestmark = pytest.mark.serving

JSON = {"Content-Type": "application/json"}


def data(nested: bytes) -> bytes:
    return b'{"inputs":[{"name":"X","shape":[1,4],"datatype":"FP32","data":' + nested + b"}]}"


def arrays(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@pytest.fixture(scope="module")
def repeating(tmp_path_factory: pytest.TempPathFactory, repositories: Path) -> Iterator[Product]:
    """``cats`` with two instances, and requests that are repeated where an instance is lost."""
    for product in running(tmp_path_factory.mktemp("deadly")):
        register(product, repositories, 1)
        product.endpoint()
        again = {"amphitrite.retry": LOST_REQUESTS}
        product.deploy("blue", "tiny:1", "--all-traffic", instance_count=2, properties=again)
        yield product


def serves(product: Product, key: str) -> bool:
    return product.request(INFER, key=key, body=REQUEST).status == 200


@pytest.mark.parametrize(
    "path", [INFER, INFER.replace("infer", "generate"), "/endpoints/cats"], ids=["infer", "generate", "address"]
)
@pytest.mark.parametrize(
    "body",
    [data(arrays(500_000)), b"[" * (LOOKED_AT_BYTES - 1), arrays(1_000_000), b"[" * 1_000_000, b'{"a":' * 1_000_000],
    ids=["data", "short open arrays", "arrays", "open arrays", "open objects"],
)
def test_json_of_any_depth_ends_no_instance(path: str, body: bytes, repeating: Product) -> None:
    """Triton 2.51 reads it by recursion."""
    key, before = repeating.keys()[0], repeating.instances()
    answer = repeating.request(path, key=key, body=body, headers=JSON)
    assert answer.status == (424 if len(body) < LOOKED_AT_BYTES else 400), answer
    assert serves(repeating, key)
    assert repeating.instances() == before


def test_a_request_that_ended_its_instance_is_not_repeated_and_the_deployment_is_soon_back(repeating: Product) -> None:
    """The proxy cannot look into a compressed body. It ends one instance and no more, and six of
    them make nobody wait."""
    key = repeating.keys()[0]
    deadly = gzip.compress(data(arrays(500_000)))
    headers = {**JSON, "Content-Encoding": "gzip"}
    for _ in range(6):
        wait_until(lambda: len(repeating.instances()) == 2 and serves(repeating, key), "two instances serve")
        before = repeating.instances()
        assert repeating.request(INFER, key=key, body=deadly, headers=headers).status == 503
        wait_until(lambda before=before: repeating.instances() != before, "the instance has ended")
        assert set(before) & set(repeating.instances())
        wait_until(lambda: serves(repeating, key), "the other instance serves")
    wait_until(lambda: len(repeating.instances()) == 2, "two instances")
