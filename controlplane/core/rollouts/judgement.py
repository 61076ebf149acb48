"""The verdict about a new deployment, after each interval in which its requests were counted.

Decides when it is rolled back, when it may get more traffic, and what is missing. Must not know
endpoints, steps or times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from amphitrite.controlplane.core.rollouts import evidence as evidences
from amphitrite.controlplane.core.rollouts.evidence import Count, Evidence, Watch

Outcome = Literal["roll back", "promote", "inconclusive", "no data"]

#: In one interval: so large a share of bad requests, and so many of them, is enough by itself. An
#: instance that is dead fails all of its requests together, which are then no independent ones.
#: ``alpha`` does not cover this limit.
_HARD_SHARE, _HARD_BAD = 0.5, 20


@dataclass(frozen=True, slots=True)
class Objective:
    """What the requests of the new deployment have to keep.

    - ``name``: of what is bad, in words: ``errors``, ``slower than 70 ms``.
    - ``limit``: the share of requests that may be bad, between 0 and 1; None: no such limit.
    - ``margin``: by how much the share may be above that of the deployment it is compared with,
      0.2 for a fifth; None: it is not compared.
    - ``slower_than_s``: the bad ones are those that take longer, in seconds; None: those that fail.
    - ``answers``: the bad ones are answers that are not like another deployment's: those that
      ``differ`` by more than a tolerance, or ``disagree`` about the largest number. Empty: it is
      not about what they say.
    """

    name: str
    limit: float | None = None
    margin: float | None = None
    slower_than_s: float | None = None
    answers: Literal["", "differ", "disagree"] = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """What is known of one objective: counts since the step began, and the evidence."""

    new: Count = field(default_factory=Count)
    other: Count = field(default_factory=Count)
    worse: Watch = field(default_factory=Watch)
    above: Watch = field(default_factory=Watch)
    below: Evidence = field(default_factory=Evidence)
    hard: Count | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """``reason``: one line for people. ``needed``: about how many more requests are needed to say
    that the objectives are kept; None if nobody can say."""

    outcome: Outcome
    reason: str
    needed: int | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """``alpha``: the probability, over all objectives together, with which a deployment that keeps
    them is rolled back. ``trials``: by the objective's name."""

    objectives: tuple[Objective, ...]
    alpha: float = 0.01
    trials: Mapping[str, Trial] = field(default_factory=dict)


def observe(judgement: Judgement, new: Mapping[str, Count], other: Mapping[str, Count]) -> Judgement:
    """The judgement after one more interval. ``new``, ``other``: by the objective's name; without
    requests, or without a name, nothing is learnt."""
    nothing = Count()
    trials = {
        one.name: _observe(
            judgement.trials.get(one.name, Trial()), one, new.get(one.name, nothing), other.get(one.name, nothing)
        )
        for one in judgement.objectives
    }
    return Judgement(judgement.objectives, judgement.alpha, trials)


def tests(objectives: Sequence[Objective]) -> int:
    """How many tests may roll back. They share ``alpha``."""
    return sum((one.limit is not None) + (one.margin is not None) for one in objectives)


def next_step(judgement: Judgement) -> Judgement:
    """The judgement at the beginning of a step: what speaks against the deployment is kept. That it
    keeps its objectives has to be shown again, with the new share of the traffic."""
    trials = {name: Trial(worse=one.worse, above=one.above) for name, one in judgement.trials.items()}
    return Judgement(judgement.objectives, judgement.alpha, trials)


def verdict(judgement: Judgement) -> Verdict:
    """What the counts so far say."""
    alpha = judgement.alpha / max(tests(judgement.objectives), 1)
    trials = [(one, judgement.trials.get(one.name, Trial())) for one in judgement.objectives]
    for objective, trial in trials:
        if reason := _against(objective, trial, alpha):
            return Verdict("roll back", reason)
    unknown = [objective for objective, trial in trials if not trial.new.total]
    if any(objective.answers for objective in unknown) and len(unknown) < len(trials):
        return Verdict("no data", "no answer could be compared yet")
    if unknown:
        return Verdict("no data", "the new deployment has answered no request yet")
    missing = [
        (objective, evidences.requests_needed(trial.below, trial.new, objective.limit, alpha))
        for objective, trial in trials
        if objective.limit is not None and not trial.below.is_enough(alpha)
    ]
    if not missing:
        return Verdict("promote", "; ".join(_kept(*one) for one in trials))
    objective, needed = max(missing, key=lambda one: float("inf") if one[1] is None else one[1])
    if needed is None:
        trial = judgement.trials[objective.name]
        reason = f"{_share(trial.new)} {objective.name} is too near to the limit of {100 * (objective.limit or 0):g} %"
        return Verdict("inconclusive", reason)
    return Verdict("inconclusive", f"about {_round(needed):,} more requests are needed", _round(needed))


def _observe(trial: Trial, objective: Objective, new: Count, other: Count) -> Trial:
    worse, above, below = trial.worse, trial.above, trial.below
    if objective.margin is not None:
        worse = evidences.worse_than_other(worse, new, other, objective.margin)
    if objective.limit is not None:
        above = evidences.above(above, new, objective.limit)
        below = evidences.below(below, new, objective.limit)
    # Where both fail, it is not the new one's fault.
    is_hard = _is_hard(new) and not (other.total and other.bad >= _HARD_SHARE * other.total)
    return Trial(
        trial.new + new,
        trial.other + other,
        worse,
        above,
        below,
        trial.hard or (new if is_hard else None),
    )


def _is_hard(new: Count) -> bool:
    return new.bad >= _HARD_BAD and new.bad >= _HARD_SHARE * new.total


def _against(objective: Objective, trial: Trial, alpha: float) -> str | None:
    """Why it is rolled back; None if it is not."""
    if trial.hard is not None:
        return f"{objective.name}: {_share(trial.hard)} in one interval"
    if objective.limit is not None and trial.above.is_enough(alpha):
        return f"{objective.name}: {_share(trial.above.new)}, above the limit of {100 * objective.limit:g} %"
    if objective.margin is not None and trial.worse.is_enough(alpha):
        return f"{objective.name}: {_share(trial.worse.new)}, against {_share(trial.worse.other)}"
    return None


def _kept(objective: Objective, trial: Trial) -> str:
    return f"{objective.name}: {_share(trial.new)}"


def _share(count: Count) -> str:
    share = 100 * count.bad / count.total if count.total else 0.0
    return f"{share:.3g} % ({count.bad:,} of {count.total:,})"


def _round(number: int) -> int:
    """Two digits: it is an estimate."""
    unit = int(10 ** max(len(str(number)) - 2, 0))
    return -(-number // unit) * unit
