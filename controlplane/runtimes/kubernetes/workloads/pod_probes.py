"""The kubelet's probes of an instance, and how long it may take to load and to stop.

Decides them from the deployment's probe settings, its request timeout and its model's size. Must
not know pods.
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

#: The minimum expected load rate in bytes per second, for a slow disk and a conversion.
LOAD_RATE = 25 * 1024 * 1024
STARTUP_PERIOD_S = 1

#: Seconds from the end of an instance's readiness until no proxy sends it requests: a watch, a
#: table and a push take less than one second.
PROPAGATION_S = 5
#: The minimum time for requests in flight, in seconds. Triton exits as soon as there are none, so a
#: longer time costs nothing and covers a timeout that is raised later.
EXIT_TIMEOUT_MIN_S = 30
_MARGIN_S = 10


@dataclass(frozen=True, slots=True)
class Termination:
    """In seconds: ``pre_stop_s`` before SIGTERM, ``exit_timeout_s`` for requests in flight, and
    SIGKILL after ``grace_s``."""

    pre_stop_s: int
    exit_timeout_s: int
    grace_s: int


def termination(request_timeout_s: float) -> Termination:
    exit_timeout = max(math.ceil(request_timeout_s), EXIT_TIMEOUT_MIN_S)
    return Termination(PROPAGATION_S, exit_timeout, PROPAGATION_S + exit_timeout + _MARGIN_S)


def load_budget_s(settings: PodSettings | None, facts: ModelFacts | None) -> int:
    """Seconds that loading may take: the maximum of 600 s, what ``readiness_probe`` allows, and
    what the size needs."""
    readiness = (settings.readiness if settings else None) or DEFAULT_READINESS_PROBE
    expected = facts.size / LOAD_RATE if facts is not None else 0.0
    return math.ceil(max(load_deadline_s(readiness), expected))


def probes(
    settings: PodSettings | None, facts: ModelFacts | None, container: Container | None = None
) -> dict[str, Any]:
    """``startupProbe``, ``readinessProbe`` and ``livenessProbe`` of the container.

    With our own Triton, readiness includes each model (strict readiness), and liveness only the
    server, so that a failing model does not stop the others. With a ``container`` the environment's
    routes are used. Raises Error("InvalidDeploymentSpec") for settings that no kubelet supports.
    """
    port = HTTP_PORT if container is None else container.port
    ready = _http("/v2/health/ready" if container is None else container.readiness_path, port)
    live = _http("/v2/health/live" if container is None else container.liveness_path, port)
    readiness = (settings.readiness if settings else None) or DEFAULT_READINESS_PROBE
    liveness = (settings.liveness if settings else None) or DEFAULT_LIVENESS_PROBE
    if liveness.success_threshold != 1:
        raise Error(
            "InvalidDeploymentSpec",
            f"liveness_probe.success_threshold is {liveness.success_threshold}; on Kubernetes it must be 1",
            target="liveness_probe.success_threshold",
            hint="remove it",
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
    """Delays are left out: they count from the end of loading, which the startup probe
    waits for."""
    return {
        "periodSeconds": probe.period,
        "timeoutSeconds": probe.timeout,
        "successThreshold": probe.success_threshold,
        "failureThreshold": probe.failure_threshold,
    }
