"""The kubelet's probes of an instance, and how long it may take to load and to end.

Decides them from the deployment's probe settings, its request timeout and its model's size. Must not know pods.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from amphitrite.controlplane.core.desired.containers import Container
from amphitrite.controlplane.core.desired.resources import (
    DEFAULT_LIVENESS_PROBE,
    DEFAULT_READINESS_PROBE,
    PodSettings,
    Probe,
)
from amphitrite.controlplane.core.planning.rollout import load_deadline_s
from amphitrite.controlplane.runtimes.kubernetes.workloads.model_facts import ModelFacts
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import HTTP_PORT
from amphitrite.schemas.errors import Error

#: A model is expected to load at least this fast (bytes a second): a slow disk and a conversion on the way.
LOAD_RATE = 25 * 1024 * 1024
STARTUP_PERIOD_S = 1

#: Between the end of an instance's readiness and the moment when no proxy sends it anything any more lie a watch, a
#: table and a push: together under one second.
PROPAGATION_S = 5
#: Triton ends as soon as nothing is in flight, so waiting for more than the timeout of today's requests costs nothing,
#: and a timeout that is raised later is covered.
EXIT_TIMEOUT_MIN_S = 30
_MARGIN_S = 10


@dataclass(frozen=True, slots=True)
class Ending:
    """``pre_stop_s`` before SIGTERM, then ``exit_timeout_s`` for requests in flight; SIGKILL after ``grace_s``."""

    pre_stop_s: int
    exit_timeout_s: int
    grace_s: int


def ending(request_timeout_s: float) -> Ending:
    exit_timeout = max(math.ceil(request_timeout_s), EXIT_TIMEOUT_MIN_S)
    return Ending(PROPAGATION_S, exit_timeout, PROPAGATION_S + exit_timeout + _MARGIN_S)


def load_budget_s(settings: PodSettings | None, facts: ModelFacts | None) -> int:
    """How long loading may take: 600 s, what ``readiness_probe`` allows, or what the size needs, whichever is most."""
    readiness = (settings.readiness if settings else None) or DEFAULT_READINESS_PROBE
    expected = facts.size / LOAD_RATE if facts is not None else 0.0
    return math.ceil(max(load_deadline_s(readiness), expected))


def probes(
    settings: PodSettings | None, facts: ModelFacts | None, container: Container | None = None
) -> dict[str, Any]:
    """``startupProbe``, ``readinessProbe`` and ``livenessProbe`` of the container.

    Of our own Triton, readiness is the server's and, strictly, each model's; liveness only the server's own, so that a
    model that cannot answer does not end the others. Of another ``container`` they are what its environment says.
    Raises Error("InvalidDeploymentSpec") for what no kubelet can do.
    """
    port = HTTP_PORT if container is None else container.port
    ready = _http("/v2/health/ready" if container is None else container.readiness_path, port)
    live = _http("/v2/health/live" if container is None else container.liveness_path, port)
    readiness = (settings.readiness if settings else None) or DEFAULT_READINESS_PROBE
    liveness = (settings.liveness if settings else None) or DEFAULT_LIVENESS_PROBE
    if liveness.success_threshold != 1:
        raise Error(
            "InvalidDeploymentSpec",
            f"liveness_probe.success_threshold is {liveness.success_threshold}; on Kubernetes it can only be 1",
            target="liveness_probe.success_threshold",
            hint="leave it out",
        )
    startup = {
        **ready,
        "periodSeconds": STARTUP_PERIOD_S,
        "timeoutSeconds": readiness.timeout,
        "successThreshold": 1,
        "failureThreshold": math.ceil(load_budget_s(settings, facts) / STARTUP_PERIOD_S),
    }
    if settings is not None and settings.readiness is not None and readiness.initial_delay:
        startup["initialDelaySeconds"] = readiness.initial_delay
    return {
        "startupProbe": startup,
        "readinessProbe": {**ready, **_timing(readiness)},
        "livenessProbe": {**live, **_timing(liveness)},
    }


def _http(path: str, port: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": port, "scheme": "HTTP"}}


def _timing(probe: Probe) -> dict[str, int]:
    """Delays count from the end of loading: the startup probe comes before. So none is left for readiness."""
    return {
        "periodSeconds": probe.period,
        "timeoutSeconds": probe.timeout,
        "successThreshold": probe.success_threshold,
        "failureThreshold": probe.failure_threshold,
    }
