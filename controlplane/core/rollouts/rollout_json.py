"""A rollout as JSON, as it is stored.

Decides the stored form. Must not know tables. Fields that a later release adds need a default here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from amphitrite.controlplane.core.rollouts.evidence import Count, Evidence, Watch
from amphitrite.controlplane.core.rollouts.judgement import Judgement, Objective, Trial
from amphitrite.controlplane.core.rollouts.request_counts import Reading
from amphitrite.controlplane.core.rollouts.rollout_plan import RolloutPlan
from amphitrite.controlplane.core.rollouts.traffic_rollout import Rollout
from amphitrite.dataplane.table.routing_table import Comparison


def to_json(rollout: Rollout) -> dict[str, Any]:
    value: dict[str, Any] = _finite(asdict(rollout))
    return value


def from_json(value: Mapping[str, Any]) -> Rollout:
    """The inverse."""
    plan = {
        **value["plan"],
        "steps": tuple(value["plan"]["steps"]),
        "objectives": tuple(Objective(**one) for one in value["plan"]["objectives"]),
        "answers": None if (answers := value["plan"].get("answers")) is None else Comparison(**answers),
        "answer_objectives": tuple(Objective(**one) for one in value["plan"].get("answer_objectives", ())),
    }
    return Rollout(
        **{
            **value,
            "plan": RolloutPlan(**plan),
            "judgement": _judgement(value["judgement"]),
            "shadow": _judgement(value["shadow"]),
            "last": {agent: _reading(one) for agent, one in value["last"].items()},
        }
    )


def _judgement(value: Mapping[str, Any]) -> Judgement:
    trials = {name: _trial(one) for name, one in value["trials"].items()}
    return Judgement(tuple(Objective(**one) for one in value["objectives"]), value["alpha"], trials)


def _trial(value: Mapping[str, Any]) -> Trial:
    return Trial(
        Count(**value["new"]),
        Count(**value["other"]),
        _watch(value["worse"]),
        _watch(value["above"]),
        Evidence(_logs(value["below"]["logs"])),
        None if value["hard"] is None else Count(**value["hard"]),
    )


def _watch(value: Mapping[str, Any]) -> Watch:
    return Watch(_logs(value["logs"]), value["looks"], Count(**value["new"]), Count(**value["other"]))


def _reading(value: Mapping[str, Any]) -> Reading:
    kinds = ("new", "other", "copies")
    new, other, copies = ({name: Count(**one) for name, one in value[kind].items()} for kind in kinds)
    return Reading(value["began"], new, other, copies, value.get("differences", {}))


def _logs(value: list[float | None]) -> tuple[float, ...]:
    return tuple(float("-inf") if one is None else one for one in value)


def _finite(value: Any) -> Any:
    """JSON has no infinity: the logarithm of nothing is null."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if value == float("-inf") else value
