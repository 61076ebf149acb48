"""What the whole product has counted is what its user has done."""

from __future__ import annotations

import re
import ssl

import httpx
import pytest

from ..waiting import wait_until
from .models import REQUEST
from .product import Product

pytestmark = pytest.mark.serving


def told(product: Product, endpoint: str) -> dict[tuple[str, str, str], int]:
    """(deployment, code, reason) -> how many requests, as Prometheus is told."""
    trust = ssl.create_default_context(cafile=str(product.ca_file))
    headers = {"Authorization": f"Bearer {product.token()}"}
    text = httpx.get(f"{product.api_url}/metrics", headers=headers, verify=trust).raise_for_status().text
    labels = rf'proxy="[^"]+",endpoint="{endpoint}",deployment="(.*)",code="(.*)",reason="(.*)"'
    line = rf"amphitrite_requests_total\{{{labels}\}} (\d+)"
    return {(deployment, code, reason): int(n) for deployment, code, reason, n in re.findall(line, text)}


def test_requests_reach_prometheus_and_the_terminal(shared: Product) -> None:
    shared.endpoint("counted")
    key = shared.keys("counted")[0]
    for path, given, times in (("counted", key, 3), ("counted", "wrong", 2), ("cats", shared.keys()[0], 4)):
        for _ in range(times):
            shared.request(f"/endpoints/{path}/v2/models/tiny/infer", key=given, body=REQUEST)
    want = {("-", "404", "NoTraffic"): 3, ("-", "401", "AuthenticationFailed"): 2}
    wait_until(lambda: told(shared, "counted") == want, "what was refused is counted")
    wait_until(lambda: told(shared, "cats").get(("blue", "200", ""), 0) >= 4, "what was served is counted")
    shown = {row["deployment"]: row for row in shared.json("online-endpoint", "metrics", "-n", "cats")}
    assert shown["blue"]["requests"] >= 4 and 0 < shown["blue"]["p50_ms"] <= shown["blue"]["p99_ms"]
    refused = shared.json("online-endpoint", "metrics", "-n", "counted")
    assert refused == [{"deployment": "-", "requests": 5, "errors": 5}]
    shared.run("online-endpoint", "delete", "-n", "counted", "--yes")
