"""One load against one rule: a deployment that is simulated in steps of a twentieth of a second.

Decides how requests come, end and are refused, and when instances are ready. Must not know rules.
Arrivals and ends are random with a seed, so a replay gives the same numbers each time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from amphitrite.controlplane.core.scaling.demand import DemandSample
from amphitrite.controlplane.core.scaling.recommendation import Supply
from bench.replays.rules import Rule
from bench.replays.traces import Trace

_STEPS = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """- ``over_share``: of the time, in which more would be in work than the target allows.
    - ``refused_share``: of the requests.
    - ``instance_hours``: ready or starting.
    - ``changes``: of the count.
    """

    over_share: float
    refused_share: float
    instance_hours: float
    changes: int


def replay(trace: Trace, rule: Rule, per_instance: int, target: float, *, seed: int = 1) -> Outcome:
    """The outcome of ``trace`` under ``rule``. An instance works on ``per_instance`` requests at
    once. What is above that is refused, as the proxy does."""
    random = np.random.default_rng(seed)
    first = max(1, int(np.ceil(trace.rates[0] * trace.duration_s / (per_instance * target))))
    count, ready = first, first
    starting: list[float] = []
    in_flight, over, refused, arrived, hours, changes = 0, 0, 0, 0, 0.0, 0
    samples: list[DemandSample] = []
    # A request comes in the middle of a step, on average.
    ends = 1 / (trace.duration_s * _STEPS + 0.5)
    lambdas = trace.rates / _STEPS
    for second in range(len(trace.rates)):
        busy = answered = lost = 0.0
        for _ in range(_STEPS):
            mean = lambdas[second]
            if trace.burstiness > 1:
                # With such rates the variance of the arrivals is `burstiness` times Poisson's.
                mean = random.gamma(mean / (trace.burstiness - 1), trace.burstiness - 1) if mean else 0.0
            ended = int(random.binomial(in_flight, ends)) if in_flight else 0
            in_flight -= ended
            answered += ended
            new = int(random.poisson(mean))
            arrived += new
            taken = min(new, max(ready * per_instance - in_flight, 0))
            lost += new - taken
            in_flight += taken
            busy += in_flight / _STEPS
        refused += int(lost)
        over += bool(trace.rates[second] * trace.duration_s > ready * per_instance * target * 1.001)
        hours += (ready + len(starting)) / 3600
        now = float(second + 1)
        samples.append(DemandSample(now, 1.0, in_flight, 0.0, answered, answered * trace.duration_s, lost))
        del samples[:-80]
        come = [at for at in starting if at <= now]
        starting = [at for at in starting if at > now]
        ready += len(come)
        wanted = rule.decide(samples, now, Supply(count, ready, len(starting), None, now))
        changes += wanted != count
        if wanted > ready + len(starting):
            starting += [now + trace.start_s] * (wanted - ready - len(starting))
        elif wanted < ready + len(starting):
            fewer = ready + len(starting) - wanted
            not_begun = min(fewer, len(starting))
            starting = starting[: len(starting) - not_begun]
            ready -= fewer - not_begun
        count = wanted
    return Outcome(over / len(trace.rates), refused / max(arrived, 1), hours, changes)


def best_fixed(trace: Trace, per_instance: int, target: float, over_share: float) -> float:
    """Instance-hours of the smallest constant number that is over target for ``over_share`` of the
    time at most."""
    demands = np.sort(trace.rates * trace.duration_s)
    at = demands[min(len(demands) - 1, int(np.ceil((1 - over_share) * len(demands))) - 1)] if over_share < 1 else 0.0
    return float(max(1, np.ceil(at / (per_instance * target))) * len(trace.rates) / 3600)
