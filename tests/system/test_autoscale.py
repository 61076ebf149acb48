"""A deployment follows its load with a real proxy and real instances, and loses no request on the
way up or down."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..load.background import Client, load
from ..waiting import wait_until
from .models import waiting
from .product import Product

pytestmark = pytest.mark.serving

DEPLOYMENT = "onlineEndpoints/follows/deployments/blue"
BODY = b'{"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]}'
#: Requests above what an instance does at once wait in the proxy, so none of them is refused.
REQUESTS = {"request_timeout_ms": 60_000, "max_queue_wait_ms": 60_000, "max_concurrent_requests_per_instance": 2}


@pytest.fixture
def follows(shared: Product, tmp_path: Path) -> Iterator[Product]:
    waiting(tmp_path / "waits", 0.2)
    shared.run("model", "create", "-n", "waits", "-v", "1", "-t", "triton_model", "-p", str(tmp_path / "waits"))
    shared.endpoint("follows")
    scale = {"type": "target_utilization", "min_instances": 1, "max_instances": 3}
    shared.deploy(
        "blue", "waits:1", "--all-traffic", endpoint="follows", request_settings=REQUESTS, scale_settings=scale
    )
    yield shared
    shared.run("online-endpoint", "delete", "-n", "follows", "-y", check=False)


def test_up_with_the_load_and_down_again_without_a_lost_request(follows: Product, tmp_path: Path) -> None:
    def shown() -> dict[str, Any]:
        found: dict[str, Any] = follows.rest("GET", DEPLOYMENT).json()
        return {"count": found["sku"]["capacity"], **found["properties"]["status"]}

    assert shown()["count"] == 1
    clients = [Client("many", "/endpoints/follows/v2/models/waits/infer", BODY, connections=8)]
    base = f"https://127.0.0.1:{follows.scoring_port}"
    with load(base, follows.ca_file, follows.keys("follows")[0], tmp_path / "load", clients, at_least=50) as seen:
        wait_until(lambda: shown()["count"] == shown().get("readyInstances") == 3, "three instances serve")
        assert "requests at once on" in shown()["lastScaleReason"]
        follows.put(DEPLOYMENT, scaleSettings={"scaleType": "TargetUtilization", "maxInstances": 1})
        wait_until(lambda: shown()["count"] == 1 and _instances(follows) == 1, "two instances have gone")
    assert seen.failed == {}
    events = follows.json("online-deployment", "scale-history", "-n", "blue", "-e", "follows")
    assert events[0]["to"] == 1 and events[-1]["from"] == 1 and max(event["to"] for event in events) == 3


def _instances(product: Product) -> int:
    return len(list(product.home.glob("instances/follows-blue-*/instance.json")))
