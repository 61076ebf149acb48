"""Rollouts of six deployments, judged by what is counted of their requests, simulated.

Decides the table. Must not know how a rollout is judged. Each run is a whole rollout on a simulated
clock, with 100 requests a second and two proxies that report each 5 s. 0.1 % of the requests to the
present deployment fail, and 0.8 % take longer than 70 ms.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amphitrite.controlplane.core.history.traffic_history import Traffic
from amphitrite.controlplane.core.rollouts import progress, rollout_plan
from amphitrite.controlplane.core.rollouts import traffic_rollout as rollout
from amphitrite.controlplane.core.rollouts.evidence import Count
from amphitrite.controlplane.core.rollouts.progress import Facts
from amphitrite.controlplane.core.rollouts.request_counts import Reading
from amphitrite.dataplane.metrics.counters import BUCKETS_S

REQUESTS_S, REPORT_S, AGENTS, HOURS_S = 100, 5, 2, 3600
ERRORS, SLOW = 0.001, 0.008
#: How the steps are written in the table -> the steps.
STEPS = {"10, 100": [10, 100], "1, 10, 50, 100": [1, 10, 50, 100]}
LATENCY = "slower than 70 ms"


@dataclass(frozen=True, slots=True)
class Scenario:
    """``failing``: the share of failed requests of one interval."""

    name: str
    failing: Callable[[random.Random, int], float]
    slow: float
    is_fault: bool = True


def _steady(rate: float) -> Callable[[random.Random, int], float]:
    return lambda random_, total: rate


def _crashing(random_: random.Random, total: int) -> float:
    """One request of 500 ends the process, and all fail until it is back, 2 s later."""
    crashes = binomial(random_, total, 1 / 500)
    return min(crashes * 2 / REPORT_S, 1.0)


SCENARIOS = (
    Scenario("fails at 1 %", _steady(0.01), SLOW),
    Scenario("fails at 5 %", _steady(0.05), SLOW),
    Scenario("fails at 50 %", _steady(0.5), SLOW),
    Scenario("3 x slower", _steady(ERRORS), 0.56),
    Scenario("crashes on some inputs", _crashing, SLOW),
    Scenario("equal", _steady(ERRORS), SLOW, is_fault=False),
)


@dataclass(frozen=True, slots=True)
class Run:
    """``after_s``: from the first step to the end. ``to_new``: requests that it got until then."""

    state: str
    after_s: float
    percent: int
    to_new: int


def run(work: Path, quick: bool = False) -> list[dict[str, Any]]:
    rows = []
    for steps in STEPS:
        for scenario in SCENARIOS:
            runs = [simulated(scenario, STEPS[steps], seed) for seed in range(20 if quick else 200)]
            times = sorted(one.after_s for one in runs)
            back = [one for one in runs if one.state == "RolledBack"]
            rows.append(
                {
                    "steps, %": steps,
                    "new deployment": scenario.name,
                    "rolled back": f"{len(back)} of {len(runs)}",
                    "promoted": sum(one.state == "Succeeded" for one in runs),
                    "median, s": round(statistics.median(times)),
                    "p90, s": round(times[int(0.9 * len(times))]),
                    "its requests until then": round(statistics.median(one.to_new for one in runs)),
                    "at step, %": statistics.mode(one.percent for one in runs),
                }
            )
    return rows


def simulated(scenario: Scenario, steps: list[int], seed: int) -> Run:
    """One rollout, until it ends or three hours are over."""
    random_, written = random.Random(seed), {"max_error_rate": "1%", "max_p95": "80ms", "compare_with": "blue"}
    before = Traffic({"blue": 100}, {})
    plan = rollout_plan.make("green", {**written, "steps": steps}, before, None, ("blue", "green"), BUCKETS_S)
    state, traffic, to_new, now = rollout.begin("images", plan, 0.0), before, 0, 0.0
    totals = [Reading(0.0, _zero(), _zero()) for _ in range(AGENTS)]
    while state.is_active and now < 3 * HOURS_S:
        found = {f"proxy-{number}": one for number, one in enumerate(totals)}
        facts = Facts(traffic, True, ("blue", "green"), True, "v1")
        one = progress.advance(state, found, facts, now)
        state, traffic = one.rollout, one.traffic or traffic
        now += REPORT_S
        for number, reading in enumerate(totals):
            offered = REQUESTS_S * REPORT_S // AGENTS
            new = binomial(random_, offered, traffic.live.get("green", 0) / 100)
            to_new += new
            totals[number] = Reading(
                0.0,
                _more(random_, reading.new, new, scenario.failing(random_, new), scenario.slow),
                _more(random_, reading.other, offered - new, ERRORS, SLOW),
            )
    return Run(state.state, (state.ended_at or now), state.percent, to_new)


def _zero() -> dict[str, Count]:
    return {"errors": Count(), LATENCY: Count()}


def _more(random_: random.Random, counts: Any, requests: int, failing: float, slow: float) -> dict[str, Count]:
    found = {"errors": failing, LATENCY: slow}
    return {name: counts[name] + Count(requests, binomial(random_, requests, rate)) for name, rate in found.items()}


def binomial(random_: random.Random, number: int, rate: float) -> int:
    return sum(random_.random() < rate for _ in range(number)) if rate else 0
