"""The control plane at 10, 100 and 1,000 endpoints: time to effect, memory, lists, cold starts.

``proxy`` is the agent with its Envoy, given routing tables directly; ``whole`` the product as it
is, whose instances are all one cheap upstream (``controls/imagined.py``); ``create`` a deployment
of the example's model on Triton.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from bench import machine
from bench.controls import create, proxy, whole
from bench.product import ML, Unavailable
from bench.stats import Goal, Report

SIZES = (10, 100, 1000)


def run(work: Path, *, quick: bool = False) -> Report:
    if not ML.exists():
        raise Unavailable(f"{ML} is missing: make install")
    port = machine.free_port()
    program = machine.compiled("upstream")
    changes = 10 if quick else 50
    tables: dict[str, list[dict[str, Any]]] = {"proxy": [], "whole": []}
    with machine.running([program, str(port)], work / "upstream.log", port=port):
        for size in SIZES[: 2 if quick else 3]:
            tables["proxy"].append(proxy.measure(work / f"proxy-{size}", size, port, changes))
            tables["whole"].append(whole.measure(work / f"whole-{size}", size, port, changes))
            shutil.rmtree(work / f"whole-{size}", ignore_errors=True)
    tables["create"] = create.measure(work)
    return Report(tables, goals(tables), NOTES)


NOTES = (
    "whole: traffic of one endpoint of all is changed by PUT; list_ms is one page of the usual size",
    "changes are watched by one connection, so a time is known to within one request",
)


def goals(tables: dict[str, list[dict[str, Any]]]) -> list[Goal]:
    through, product = tables["proxy"][-1], tables["whole"][-1]
    size = f"{through['endpoints']} endpoints"
    cold, warm = tables["create"]
    return [
        Goal(f"routing table to effect p99, {size}", "at most", 100, through["effect_p99_ms"], "ms"),
        Goal(f"PUT of the traffic to effect p99, {size}", "at most", 100, product["put_to_effect_p99_ms"], "ms"),
        Goal(f"control plane's memory, {size}", "at most", 300, product["control_plane_mb"], "MB"),
        Goal(f"list of endpoints p99, {size}", "at most", 150, product["list_p99_ms"], "ms"),
        Goal(f"Envoy's memory, {size}", "at most", 300, product["envoy_mb"], "MB"),
        Goal(f"cold start of agent and Envoy until it serves, {size}", "at most", 5, through["cold_start_s"], "s"),
        Goal("create to first 200, cold", "at most", 15, cold["first_200_s"], "s"),
        Goal("create to first 200, warm", "at most", 5, warm["first_200_s"], "s"),
    ]
