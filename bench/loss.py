"""Requests that are lost: through every kind of change, and when one of two instances is killed.

The load, the changes and the kills are those of the tests (``tests/system/changing.py``,
``killing.py``): kept connections, new ones and streams; then ``kill -9`` of an instance, with
``amphitrite.retry: lost-requests`` and not.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

from bench.product import ML, Unavailable
from bench.stats import Goal, Report
from tests.load.background import Load
from tests.system.changing import Changing, Shape, through
from tests.system.killing import CONNECTIONS, RETRY, kill_instances
from tests.system.product import Product, running

KILLS = 50


def run(work: Path, *, quick: bool = False) -> Report:
    """Raises Unavailable."""
    if not ML.exists():
        raise Unavailable(f"{ML} is missing: make install")
    shape, kills = (Shape.of(5_000), 2) if quick else (Shape.of(1_000_000), KILLS)
    with contextlib.contextmanager(running)(work) as product:
        began = time.monotonic()
        seen, changing = through(product, work, shape)
        took = time.monotonic() - began
        requests = request_rows(seen, took)
        rows = killed(product, work, kills)
    return Report(
        {"requests": requests, "changes under these requests": change_rows(changing), "kills": rows},
        goals(shape, requests, rows),
        NOTES,
    )


NOTES = (
    "each request is sent once; failed: a refused or cut connection, or a status other than 2xx",
    f"kills: at most {CONNECTIONS} requests are in flight at any time, on both instances together",
)


def killed(product: Product, work: Path, times: int) -> list[dict[str, Any]]:
    """Blue alone, with two instances."""
    product.put_traffic("cats", {"blue": 100})
    product.run("online-deployment", "delete", "-n", "green", "-e", "cats", "-y")
    rows = []
    for retry in RETRY:
        began = time.monotonic()
        seen = kill_instances(product, work, "both:1", times, retry)
        [total] = [row for row in request_rows(seen, time.monotonic() - began) if row["client"] == "all"]
        rows.append({"amphitrite.retry": retry, "kills": times, **total})
    return [{key: value for key, value in row.items() if key != "client"} for row in rows]


def request_rows(seen: Load, took_s: float) -> list[dict[str, Any]]:
    """One for each client, and one for all."""
    rows = [
        {
            "client": name,
            "requests": result["requests"],
            "failed": result["failed"],
            "p50_ms": result["latency_ms"]["p50"],
            "p99_ms": result["latency_ms"]["p99"],
            "max_ms": result["latency_ms"]["max"],
        }
        for name, result in seen.results.items()
    ]
    failed = sum(row["failed"] for row in rows)
    return [*rows, {"client": "all", "requests": seen.requests, "failed": failed, "took_s": round(took_s)}]


def change_rows(changing: Changing) -> list[dict[str, Any]]:
    return [
        {"change": kind, "times": times, "mean_s": round(changing.took_s[kind] / times, 2)}
        for kind, times in changing.done.items()
    ]


def goals(shape: Shape, requests: list[dict[str, Any]], kills: list[dict[str, Any]]) -> list[Goal]:
    whole, (repeated, strict) = requests[-1], kills
    return [
        Goal("requests through changes", "at least", shape.requests, whole["requests"]),
        Goal("of these failed", "at most", 0, whole["failed"]),
        Goal(f"failed in {repeated['kills']} kills, lost requests repeated", "at most", 0, repeated["failed"]),
        Goal(
            f"failed in {strict['kills']} kills, only those that did not run repeated: those in flight", "at most",
            CONNECTIONS * strict["kills"], strict["failed"],
        ),
    ]  # fmt: skip
