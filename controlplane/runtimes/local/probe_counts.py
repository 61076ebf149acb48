"""Counting of probe results: when an instance is ready, unready or no longer live.

Decides what a row of results means with a deployment's probe settings. Pure. Must not know how an
instance is probed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from amphitrite.controlplane.core.desired.resources import Probe


@dataclass(frozen=True, slots=True)
class ProbeState:
    """``passing`` changes after ``success_threshold`` or ``failure_threshold`` equal results in a
    row.

    ``row``: the number of results in a row that contradict ``passing``.
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
