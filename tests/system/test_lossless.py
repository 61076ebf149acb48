"""Traffic changes and replacements under a closed-loop load: no request fails.

``AMPHITRITE_LOAD_REQUESTS`` sets how many requests are sent (default 15,000; the product's claim is 100,000), with 50
traffic changes and two replacements spread over them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .models import REQUEST
from .product import Product
from .test_semantics import INFER

pytestmark = pytest.mark.serving

LOAD = Path(__file__).parents[1] / "load" / "closed_loop.py"
REQUESTS = int(os.environ.get("AMPHITRITE_LOAD_REQUESTS", "15000"))
CHANGES = 50


def test_no_request_is_lost(fresh: Product, tmp_path: Path) -> None:
    fresh.endpoint()
    fresh.deploy("blue", "tiny:1", "--all-traffic")
    fresh.deploy("green", "tiny:2")
    body = tmp_path / "request.json"
    body.write_bytes(REQUEST)
    load = subprocess.Popen(
        [
            *(sys.executable, str(LOAD), "--json", "--connections", "8", "--requests", str(REQUESTS)),
            *("--url", f"https://127.0.0.1:{fresh.scoring_port}{INFER}"),
            *("--cafile", str(fresh.home / "certificates" / "ca.pem")),
            *("--header", f"Authorization: Bearer {fresh.keys()[0]}", "--body-file", str(body)),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    changes = 0
    try:
        while load.poll() is None or changes < CHANGES:
            fresh.put_traffic("cats", {"blue": 10 * (changes % 11), "green": 100 - 10 * (changes % 11)})
            changes += 1
            if changes in (CHANGES // 3, 2 * CHANGES // 3):
                # Both names are replaced while they serve: by the second version, then by the third.
                name, version = ("blue", 2) if changes == CHANGES // 3 else ("green", 3)
                fresh.deploy(name, f"tiny:{version}", verb="update")
    finally:
        output, _ = load.communicate(timeout=600)
    result = json.loads(output)
    print(f"{result['requests']} requests, {changes} traffic changes, 2 replacements: {result}")
    assert result["failed"] == 0, result
    assert result["requests"] == REQUESTS
    assert set(result["deployments"]) == {"blue", "green"}
