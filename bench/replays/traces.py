"""Loads: requests in each second.

Decides their shapes. Must not know rules or deployments. The shape of Azure Functions is made from
what its authors published (Shahrad et al., "Serverless in the Wild", USENIX ATC 2020): durations
are log-normal with mu -0.38 and sigma 2.36, arrivals are burstier than Poisson, and the daily curve
has half of its height as a base.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Rates = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Trace:
    """``rates``: requests per second, for each second. ``duration_s``: of one request, on average.
    ``start_s``: seconds until an instance is ready. ``burstiness``: of the arrivals; 1 is
    Poisson."""

    name: str
    rates: Rates
    duration_s: float
    start_s: float = 10.0
    burstiness: float = 1.0


def _seconds(length: int) -> Rates:
    return np.arange(length, dtype=np.float64)


def step() -> Trace:
    """Ten times the load from one second to the next, for 20 minutes."""
    t = _seconds(3600)
    return Trace("step", np.where((t >= 900) & (t < 2100), 80.0, 8.0), 0.5)


def ramp() -> Trace:
    """Up for half an hour, and down again."""
    t = _seconds(4200)
    return Trace("ramp", 4 + 96 * np.clip(1 - np.abs(t - 2100) / 1800, 0, 1), 0.5)


def burst() -> Trace:
    """2 s in each minute, eight times the base."""
    t = _seconds(3600)
    return Trace("burst of 2 s", np.where(t % 60 < 2, 80.0, 10.0), 0.5)


def daily() -> Trace:
    """A day of 24 minutes: a sine between night and noon, three times."""
    t = _seconds(3 * 1440)
    return Trace("daily sine", 42 - 38 * np.cos(2 * np.pi * t / 1440), 0.5)


def flapping() -> Trace:
    """Back and forth around an edge of two sizes every 20 s."""
    t = _seconds(3600)
    return Trace("flapping", np.where(t // 20 % 2 == 0, 20.0, 26.0), 0.5)


def functions() -> Trace:
    """The published shape of Azure Functions 2019, a day in an hour and a half."""
    t = _seconds(5400)
    random = np.random.default_rng(2019)
    slow = np.exp(np.cumsum(random.normal(0, 0.03, t.size)) * np.exp(-t / t.size))
    curve = (1.5 + np.sin(2 * np.pi * t / t.size - np.pi / 2)) / 2
    rates = 12 * curve * slow / np.mean(curve * slow)
    # The mean of the log-normal is 11 s; the tail beyond a minute is cut, as a time limit does.
    durations = np.minimum(np.exp(random.normal(-0.38, 2.36, 200_000)), 60.0)
    return Trace("Azure Functions 2019", rates, float(np.mean(durations)), burstiness=4.0)


ALL: tuple[Callable[[], Trace], ...] = (step, ramp, burst, daily, flapping, functions)
