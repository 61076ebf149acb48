"""What a rollout is asked to do: its steps, its objectives and its bounds.

Decides the fields, their defaults and their meaning. A plan in its written form is what a user
sends and what an endpoint's document contains. Must not know how a rollout goes on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from amphitrite.controlplane.core.history.traffic_history import Shares, Traffic
from amphitrite.controlplane.core.rollouts.judgement import Objective
from amphitrite.controlplane.core.rollouts.quantities import duration_text, seconds, share, share_text
from amphitrite.dataplane.table.routing_table import Comparison
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

#: The share of all requests that may be slower than the limit of this percentile.
PERCENTILES = {"max_p50": 0.5, "max_p90": 0.1, "max_p95": 0.05, "max_p99": 0.01}
DEFAULTS: Mapping[str, Any] = {
    "steps": [1, 10, 50, 100],
    "bake": "60s",
    "max_error_rate": "1%",
    "margin": "20%",
    "alpha": 0.01,
}
#: About the answers to requests that are sent again to the deployment, while traffic is mirrored.
ANSWERS = ("max_answer_difference", "max_differing_answers", "min_argmax_agreement", "answer_share")
FIELDS = ("steps", "bake", "max_error_rate", *PERCENTILES, "compare_with", "margin", "alpha", "shadow", *ANSWERS)
#: Percent of the live traffic that is mirrored before the first step.
SHADOW_PERCENT = 10
#: The share of answers that may differ, and of requests whose answers are compared, unless said.
_DIFFERING, _COMPARED = "1%", "10%"
_STEPS_MAX, _BAKE_MAX_S = 20, 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """- ``to``: the deployment that is judged. ``compare_with``: the other one; None: limits alone.
    - ``base``, ``mirrored``: the traffic before, which a rollback brings back. ``target``: the
      traffic after.
    - ``steps``: percent of the live traffic for ``to``, growing; the last one is ``target``'s.
    - ``bake_s``: the shortest time of each step. ``shadow_s``: that of mirrored traffic before the
      first step; 0: there is none.
    - ``answers``: whose answers are compared with those of ``to`` while traffic is mirrored; None:
      nobody's. ``answer_objectives``: of these.
    - ``alpha``: the probability, over all objectives and the whole rollout, with which a deployment
      that keeps them is rolled back.
    """

    to: str
    base: Shares
    target: Shares
    steps: tuple[int, ...]
    bake_s: float
    objectives: tuple[Objective, ...]
    compare_with: str | None = None
    alpha: float = 0.01
    shadow_s: float = 0.0
    mirrored: Shares = field(default_factory=dict)
    answers: Comparison | None = None
    answer_objectives: tuple[Objective, ...] = ()

    @property
    def shadow_objectives(self) -> tuple[Objective, ...]:
        """Of mirrored requests: how long they take is not counted."""
        if not self.shadow_s:
            return ()
        return (*(one for one in self.objectives if one.slower_than_s is None), *self.answer_objectives)


def make(
    to: str,
    written: Mapping[str, Any],
    before: Traffic,
    target: Shares | None,
    deployments: Collection[str],
    edges_s: Sequence[float],
) -> RolloutPlan:
    """The plan of what a user has ``written`` (``FIELDS``).

    ``before``: the traffic now. ``target``: the traffic in the end; None: the last step for ``to``,
    and the rest for the others in proportion. ``deployments``: of the endpoint. ``edges_s``: the
    bounds between which latencies are counted. Raises Error BadArgument or UserError.
    """
    given = {**DEFAULTS, **{name: value for name, value in written.items() if value is not None}}
    if unknown := sorted(set(given) - set(FIELDS)):
        raise _wrong(unknown[0], f"is no field of a rollout; fields: {', '.join(FIELDS)}")
    names = {key(name): name for name in deployments}
    to = _deployment("to", to, names)
    base, mirrored = ({names.get(key(n), n): part for n, part in of.items()} for of in (before.live, before.mirrored))
    if not base:
        raise Error(
            "UserError",
            "the endpoint has no traffic that could move, and none to go back to",
            target=to,
            hint=f'give it its first traffic: ml online-endpoint update -n ENDPOINT --traffic "{to}=100"',
        )
    compare_with = given.get("compare_with")
    if compare_with is not None:
        compare_with = _deployment("compare_with", compare_with, names)
        if compare_with == to:
            raise _wrong("compare_with", f"is {to} itself")
    if target is not None:
        target = {names.get(key(name), name): percent for name, percent in target.items() if percent}
    answers = _answers(given, to, compare_with or max(base, key=lambda name: (base[name], name)))
    if given.get("shadow") and base.get(to):
        raise _wrong("shadow", f"{to} has live traffic already, and cannot have mirrored traffic too")
    steps = _steps(given["steps"], base.get(to, 0), None if target is None else target.get(to, 0), to)
    return RolloutPlan(
        to=to,
        base=base,
        target=shares_at(to, base, steps[-1]) if target is None else target,
        steps=steps,
        bake_s=_bounded("bake", given["bake"]),
        objectives=_objectives(given, compare_with is not None, edges_s),
        compare_with=compare_with,
        alpha=_alpha(given["alpha"]),
        shadow_s=_bounded("shadow", given["shadow"]) if given.get("shadow") else 0.0,
        mirrored=mirrored,
        answers=answers,
        answer_objectives=_answer_objectives(given),
    )


def shares_at(to: str, base: Shares, percent: int) -> dict[str, int]:
    """``percent`` for ``to``. The others get the rest, in proportion to ``base``, by largest
    remainders."""
    others = {name: part for name, part in base.items() if name != to}
    rest, total = 100 - percent, sum(others.values())
    if not total or not rest:
        return {to: 100}
    shares = {name: part * rest // total for name, part in others.items()}
    by_remainder = sorted(others, key=lambda name: (-(others[name] * rest % total), name))
    for name in by_remainder[: rest - sum(shares.values())]:
        shares[name] += 1
    return {name: part for name, part in sorted({**shares, to: percent}.items()) if part}


def grown(base: Shares, target: Shares) -> list[str]:
    """The deployments whose share is larger in ``target`` than in ``base``."""
    before = {key(name): percent for name, percent in base.items()}
    return [name for name, percent in target.items() if percent > before.get(key(name), 0)]


def written(plan: RolloutPlan) -> dict[str, Any]:
    """What a user would write for it."""
    percentiles = {
        name: duration_text(one.slower_than_s)
        for name, part in PERCENTILES.items()
        for one in plan.objectives
        if one.slower_than_s is not None and one.limit == part
    }
    errors = plan.objectives[0]
    return {
        "steps": list(plan.steps),
        "bake": duration_text(plan.bake_s),
        "max_error_rate": share_text(errors.limit or 0.0),
        **percentiles,
        **({} if plan.compare_with is None else {"compare_with": plan.compare_with}),
        **({} if errors.margin is None else {"margin": share_text(errors.margin)}),
        "alpha": plan.alpha,
        **({"shadow": duration_text(plan.shadow_s)} if plan.shadow_s else {}),
        **_written_answers(plan),
    }


def _written_answers(plan: RolloutPlan) -> dict[str, Any]:
    if plan.answers is None:
        return {}
    limits = {one.answers: one.limit or 0.0 for one in plan.answer_objectives}
    return {
        **({"max_answer_difference": plan.answers.tolerance} if "differ" in limits else {}),
        **({"max_differing_answers": share_text(limits["differ"])} if "differ" in limits else {}),
        **({"min_argmax_agreement": share_text(round(1 - limits["disagree"], 6))} if "disagree" in limits else {}),
        "answer_share": f"{plan.answers.share}%",
    }


def _answers(given: Mapping[str, Any], to: str, base: str) -> Comparison | None:
    asked = [name for name in ANSWERS if given.get(name) is not None]
    if not asked:
        return None
    if not given.get("shadow"):
        raise _wrong(asked[0], "needs shadow: answers are compared while traffic is mirrored")
    limits = ("max_answer_difference", "min_argmax_agreement")
    if not any(name in asked for name in limits):
        raise _wrong(asked[0], f"needs {' or '.join(limits)}")
    if base == to:
        raise _wrong(asked[0], f"there is no other deployment whose answers could be compared with those of {to}")
    tolerance = given.get("max_answer_difference")
    if tolerance is None and "max_differing_answers" in asked:
        raise _wrong("max_differing_answers", "needs max_answer_difference")
    is_number = isinstance(tolerance, int | float) and not isinstance(tolerance, bool)
    if tolerance is not None and not (is_number and 0 <= tolerance <= 1e12):
        raise _wrong("max_answer_difference", f"must be a number from 0 to 1e12; found {tolerance!r}")
    part = _share("answer_share", given.get("answer_share") or _COMPARED, 0.01, 1.0)
    return Comparison(key(base), key(to), round(100 * part), float(tolerance or 0))


def _answer_objectives(given: Mapping[str, Any]) -> tuple[Objective, ...]:
    found = []
    if (tolerance := given.get("max_answer_difference")) is not None:
        limit = _share("max_differing_answers", given.get("max_differing_answers") or _DIFFERING, 0.00001, 0.5)
        found.append(Objective(f"answers that differ by more than {tolerance:g}", limit, answers="differ"))
    if (agreement := given.get("min_argmax_agreement")) is not None:
        limit = 1 - _share("min_argmax_agreement", agreement, 0.5, 0.99999)
        found.append(Objective("answers with another argmax", round(limit, 7), answers="disagree"))
    return tuple(found)


def _objectives(given: Mapping[str, Any], compared: bool, edges_s: Sequence[float]) -> tuple[Objective, ...]:
    margin = _share("margin", given["margin"], 0.0, 10.0) if compared else None
    found = [Objective("errors", _share("max_error_rate", given["max_error_rate"], 0.00001, 0.5), margin)]
    for name, part in PERCENTILES.items():
        if given.get(name) is None:
            continue
        limit_s = _quantity(name, given[name])
        # Latencies are counted between fixed bounds. The next one below is on the safe side.
        edge = max((one for one in edges_s if one <= limit_s + 1e-9), default=None)
        if edge is None:
            raise _wrong(name, f"must be at least {duration_text(edges_s[0])}, the smallest that is counted")
        found.append(Objective(f"slower than {_spaced(edge)}", part, margin, edge))
    return tuple(found)


def _spaced(edge_s: float) -> str:
    return f"{edge_s * 1000:g} ms" if edge_s < 1 else f"{edge_s:g} s"


def _steps(value: object, present: int, last: int | None, to: str) -> tuple[int, ...]:
    numbers = value if isinstance(value, list | tuple) else ()
    is_whole = all(isinstance(one, int) and not isinstance(one, bool) and 0 < one <= 100 for one in numbers)
    if not numbers or len(numbers) > _STEPS_MAX or not is_whole or sorted(set(numbers)) != list(numbers):
        raise _wrong("steps", f"must be 1 to {_STEPS_MAX} growing whole numbers from 1 to 100; found {value!r}")
    final = numbers[-1] if last is None else last
    steps = (*(one for one in numbers if present < one < final), final)
    if final <= present:
        raise _wrong("steps", f"end at {final} %, but {to} has {present} % of the traffic already")
    return steps


def _deployment(field: str, name: object, names: Mapping[str, str]) -> str:
    found = names.get(key(name)) if isinstance(name, str) else None
    if found is None:
        raise _wrong(field, f"there is no deployment {name}; there are: {', '.join(sorted(names.values())) or 'none'}")
    return found


def _bounded(field: str, value: object) -> float:
    found = _quantity(field, value)
    if found > _BAKE_MAX_S:
        raise _wrong(field, "must be at most 168h")
    return found


def _quantity(field: str, value: object) -> float:
    try:
        return seconds(value)
    except ValueError as exc:
        raise _wrong(field, str(exc)) from exc


def _share(field: str, value: object, least: float, most: float) -> float:
    try:
        found = share(value)
    except ValueError as exc:
        raise _wrong(field, str(exc)) from exc
    if not least <= found <= most:
        raise _wrong(field, f"must be from {share_text(least)} to {share_text(most)}; found {value}")
    return found


def _alpha(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1e-6 <= value <= 0.2:
        raise _wrong("alpha", f"must be a number from 0.000001 to 0.2; found {value!r}")
    return float(value)


def _wrong(field: str, message: str) -> Error:
    return Error("BadArgument", f"{field}: {message}", target=field)
