"""What was counted of requests since the last look, from counters that only grow.

Decides how counters of several proxies add up while proxies come, restart and vanish. Must not know
what is counted, or where counters are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from amphitrite.controlplane.core.rollouts.evidence import Count

#: By the objective's name.
Counts = Mapping[str, Count]
#: Agents whose counters are remembered. One that comes back after so many others begins anew.
_AGENTS_MAX = 256


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters of one agent since ``began`` (seconds since the epoch).

    ``new``: of the deployment that is judged; ``other``: of the one it is compared with;
    ``copies``: of mirrored requests to the former, and of its answers that were compared.
    ``differences``: the largest ones of these since the comparison began, by tensor.
    """

    began: float
    new: Counts = field(default_factory=dict)
    other: Counts = field(default_factory=dict)
    copies: Counts = field(default_factory=dict)
    differences: Mapping[str, float] = field(default_factory=dict)


#: By agent.
Readings = Mapping[str, Reading]


def since(last: Readings, found: Readings, start: float) -> Reading:
    """What was counted between ``last`` and ``found``, over all agents.

    An agent that began after ``start`` has counted all of it since. One that began before, and is
    heard for the first time, only begins to count: nobody knows when its requests were. A counter
    that is smaller than before was counted from zero.
    """
    total = Reading(start)
    for agent, reading in found.items():
        before = last.get(agent)
        if before is None or before.began != reading.began:
            if reading.began < start:
                continue
            before = Reading(reading.began)
        total = Reading(
            start,
            _added(total.new, before.new, reading.new),
            _added(total.other, before.other, reading.other),
            _added(total.copies, before.copies, reading.copies),
            largest(total.differences, reading.differences),
        )
    return total


def largest(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """The larger number of each name."""
    return {name: max(one.get(name, 0.0), other.get(name, 0.0)) for name in sorted({*one, *other})}


def remembered(last: Readings, found: Readings) -> dict[str, Reading]:
    """The newest reading of each agent, also of those that are not heard now."""
    silent = {agent: reading for agent, reading in last.items() if agent not in found}
    return dict([*silent.items(), *found.items()][-_AGENTS_MAX:])


def _added(total: Counts, before: Counts, found: Counts) -> dict[str, Count]:
    return {name: total.get(name, Count()) + _grown(before.get(name, Count()), one) for name, one in found.items()}


def _grown(before: Count, found: Count) -> Count:
    if found.total < before.total or found.bad < before.bad:
        return found
    return Count(found.total - before.total, found.bad - before.bad)
