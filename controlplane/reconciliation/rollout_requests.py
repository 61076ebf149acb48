"""What a rollout needs of the counters of proxies.

Decides which requests failed, which were slow, and which say nothing about a deployment. Must not
know steps or verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from amphitrite.controlplane.core.rollouts.evidence import Count
from amphitrite.controlplane.core.rollouts.judgement import Objective
from amphitrite.controlplane.core.rollouts.request_counts import Reading, Readings
from amphitrite.controlplane.core.rollouts.rollout_plan import RolloutPlan
from amphitrite.dataplane.metrics import answer_counts
from amphitrite.dataplane.metrics.counters import BUCKETS_S, Totals
from amphitrite.schemas.names import key

Fields = Mapping[str, float]

#: What the deployment owes an answer for: its own failures (424), too late (408), and no room left
#: for a request of its share (429). All from 500 on count too.
_FAILED = frozenset({"408", "424", "429"})


def readings(totals: Mapping[str, Totals], endpoint: str, plan: RolloutPlan) -> Readings:
    """``totals``: by agent."""
    return {agent: _reading(of, key(endpoint), plan) for agent, of in totals.items()}


def _reading(totals: Totals, endpoint: str, plan: RolloutPlan) -> Reading:
    fields = {key(name[1]): of for name, of in totals.counters.items() if key(name[0]) == endpoint}
    new, other = (fields.get(key(name or ""), {}) for name in (plan.to, plan.compare_with))
    return Reading(
        totals.began,
        {one.name: _live(new, one) for one in plan.objectives},
        {one.name: _live(other, one) for one in plan.objectives} if plan.compare_with else {},
        {one.name: _compared(new, one) if one.answers else _copies(new) for one in plan.shadow_objectives},
        _differences(totals, endpoint, plan),
    )


def _live(fields: Fields, objective: Objective) -> Count:
    if objective.slower_than_s is not None:
        return _slow(fields, objective.slower_than_s)
    by_code = _by_code(fields, "requests/")
    failed = sum(n for code, n in by_code if code in _FAILED or code >= "500")
    # Other refusals, and clients that have left, are not the deployment's doing.
    answered = sum(n for code, n in by_code if "200" <= code < "400")
    return Count(int(answered + failed), int(failed))


def _copies(fields: Fields) -> Count:
    """Of mirrored requests the instance's own status is counted: 4xx is what a client would get as
    424."""
    by_code = _by_code(fields, "copies/")
    return Count(int(sum(n for _, n in by_code)), int(sum(n for code, n in by_code if code >= "400")))


def _compared(fields: Fields, objective: Objective) -> Count:
    bad = answer_counts.DIFFER if objective.answers == "differ" else answer_counts.DISAGREE
    return Count(int(fields.get(answer_counts.COMPARED, 0)), int(fields.get(bad, 0)))


def _differences(totals: Totals, endpoint: str, plan: RolloutPlan) -> Mapping[str, float]:
    found = [of for (name, to), of in totals.differences.items() if (key(name), key(to)) == (endpoint, key(plan.to))]
    return found[0] if found and plan.answers is not None else {}


def _slow(fields: Fields, edge_s: float) -> Count:
    edge = BUCKETS_S.index(edge_s)
    found = [(int(name.removeprefix("le/")), n) for name, n in fields.items() if name.startswith("le/")]
    return Count(int(sum(n for _, n in found)), int(sum(n for index, n in found if index > edge)))


def _by_code(fields: Fields, prefix: str) -> Sequence[tuple[str, float]]:
    """(status with three digits, number)."""
    return [(name.split("/")[1].zfill(3), n) for name, n in fields.items() if name.startswith(prefix)]
