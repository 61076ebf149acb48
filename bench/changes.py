"""Traffic changes between two deployments under load: duration of the command, failed requests.

A change is timed from the start of ``ml online-endpoint update`` to its return, which is after the
proxy has acknowledged the new routes; starting the command is part of it (see the benchmark
``commands``).
"""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

from bench import product

CHANGES = 20


def run(work: Path) -> list[dict[str, Any]]:
    stop = work / "stop"
    times = []
    with product.running(work, "blue", "green") as server:
        load = server.load("v2/models/model_1", "--connections", "8", "--until-file", str(stop))
        with subprocess.Popen(load, stdout=subprocess.PIPE, text=True) as generator:
            try:
                for change in range(CHANGES):
                    traffic = "blue=0 green=100" if change % 2 == 0 else "blue=100 green=0"
                    began = time.perf_counter()
                    server.ml("online-endpoint", "update", "-n", "pictures", "--traffic", traffic)
                    times.append((time.perf_counter() - began) * 1000)
            finally:
                stop.touch()
            output, _ = generator.communicate()
    report = json.loads(output)
    return [
        {
            "changes": CHANGES,
            "median_ms": round(statistics.median(times), 1),
            "max_ms": round(max(times), 1),
            "requests": report["requests"],
            "failed": report["failed"],
            "p99_ms": report["latency_ms"]["p99"],
        }
    ]
