"""How long the command line takes to start, in milliseconds."""

from __future__ import annotations

import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

from bench.product import ML, Unavailable

RUNS = 15


def run(work: Path) -> list[dict[str, Any]]:
    if not ML.exists():
        raise Unavailable(f"{ML} is missing: make install")
    rows = []
    for arguments in (["--help"], ["online-endpoint", "--help"], ["online-deployment", "create", "--help"]):
        times = []
        for _ in range(RUNS):
            began = time.perf_counter()
            subprocess.run([ML, *arguments], cwd=work, stdout=subprocess.DEVNULL, check=True)
            times.append((time.perf_counter() - began) * 1000)
        rows.append(
            {
                "command": " ".join(["ml", *arguments]),
                "median_ms": round(statistics.median(times), 1),
                "max_ms": round(max(times), 1),
            }
        )
    return rows
