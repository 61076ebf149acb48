"""A workload as JSON in an annotation of its Deployment, and back.

Decides the format, and that it has no environment variables: everybody who may look at Deployments
reads annotations, and variables may be secret. Must not know where it is stored.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from amphitrite.controlplane.core.desired.containers import Container
from amphitrite.controlplane.core.desired.resources import ModelReference, PodSettings, Probe, WorkloadSpec


def to_json(workload: WorkloadSpec) -> str:
    """Without its environment variables, for which its name stands. Earlier releases read the
    field, so it stays, empty."""
    return json.dumps(asdict(replace(workload, environment_variables=())), sort_keys=True, separators=(",", ":"))


def from_json(text: str) -> WorkloadSpec:
    """Raises ValueError if it is not the output of ``to_json``, of this release or of an earlier
    one, whose output has the variables."""
    try:
        value = json.loads(text)
        pod, container = value["pod"], value["container"]
        return WorkloadSpec(
            **{
                **value,
                "model": ModelReference(**{**value["model"], "model_names": tuple(value["model"]["model_names"])}),
                "environment_variables": _pairs(value["environment_variables"]),
                "pod": None if pod is None else _pod(pod),
                "container": None if container is None else Container(**container),
            }
        )
    except (KeyError, TypeError) as exc:
        raise ValueError(f"not a workload: {exc!r}") from exc


def _pod(value: dict[str, Any]) -> PodSettings:
    return PodSettings(
        readiness=None if value["readiness"] is None else Probe(**value["readiness"]),
        liveness=None if value["liveness"] is None else Probe(**value["liveness"]),
        requests=_pairs(value["requests"]),
        limits=_pairs(value["limits"]),
        model_mount_path=value["model_mount_path"],
    )


def _pairs(value: list[list[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, text) for name, text in value)
