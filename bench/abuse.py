"""Mixed abuse beside clients of another endpoint: what they notice, and what memory it takes.

The attacks are those of the tests (``tests/system/abusing.py``): silent connections to both ports,
slow heads and bodies, JSON of a million brackets, gRPC messages of small fields, forms, and wrong
keys, at most a thousand in a second. All come from this machine and take of its cores.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from bench.product import ML, Unavailable
from bench.stats import Goal, Report
from tests.system import abusing
from tests.system.abusing import Seen
from tests.system.product import running

#: How long clients are watched before and after.
CALM_S = 5.0
_QUICK_S = 5.0
_MIB = 1024 * 1024


def run(work: Path, *, quick: bool = False, seconds: float = 60.0) -> Report:
    """Raises Unavailable."""
    if not ML.exists():
        raise Unavailable(f"{ML} is missing: make install")
    with contextlib.contextmanager(running)(work) as product:
        abusing.prepare(product, work)
        # The first requests of a model take longer.
        abusing.clients_of_another(product, work / "warm", 1, attacked=False)
        phases = {
            name: abusing.clients_of_another(product, work / name, length, attacked=name == "during")
            for name, length in (("before", CALM_S), ("during", _QUICK_S if quick else seconds), ("after", CALM_S))
        }
    rows = [row(name, seen) for name, seen in phases.items()]
    attacks = [{"attack": name, "times": times} for name, times in sorted(phases["during"].made.items())]
    goals = [Goal("failed requests of others", "at most", 0, sum(one["failed"] for one in rows))]
    return Report({"clients of another endpoint, and memory": rows, "attacks": attacks}, goals)


def row(name: str, seen: Seen) -> dict[str, Any]:
    """One phase. Latencies are those of kept connections; memory is the most that was seen."""
    latency = seen.load.results["kept"]["latency_ms"]
    return {
        "phase": name,
        "requests": seen.load.requests,
        "failed": sum(result["failed"] for result in seen.load.results.values()),
        "p50_ms": latency["p50"],
        "p99_ms": latency["p99"],
        **{f"{process}, MiB": round(most / _MIB) for process, most in seen.memory.items()},
    }
