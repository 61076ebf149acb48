"""Counts of probe results: when an instance is ready, unready, no longer live.

Decides, purely, what a row of results means under a deployment's probe settings. Must not know how a probe is made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from amphitrite.controlplane.core.desired.resources import Probe


@dataclass(frozen=True, slots=True)
class ProbeState:
    """``passing`` turns over after ``success_threshold`` or ``failure_threshold`` equal results in a row.

    ``row``: how many results in a row contradict ``passing``.
    """

    passing: bool
    row: int = 0


def step(state: ProbeState, succeeded: bool, probe: Probe) -> ProbeState:
    """The state after one more result."""
    if succeeded == state.passing:
        return replace(state, row=0)
    row = state.row + 1
    threshold = probe.success_threshold if succeeded else probe.failure_threshold
    return ProbeState(succeeded) if row >= threshold else replace(state, row=row)
