"""How the containers of a pod have exited, from the kubelet's reports: as facts and as a sentence.

Decides which exits a pod reports, and which text explains one. Must not know slots or living
instances.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amphitrite.controlplane.runtimes import exit_reasons
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_facts import Json, created, seconds, spec, state, status
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_history import PodHistory
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import FETCHER, SERVER

#: Seconds: a probe failure at most this long before a container's exit explains it.
_PROBE_WINDOW_S = 60.0
_SIGNALS = range(129, 193)


@dataclass(frozen=True, slots=True)
class Exit:
    """One exited container.

    ``attempt``: counts from 1 over both containers. ``exit_code``: negative for a signal, as in
    ``subprocess``; None if it is no longer reported. ``log``: its last lines, if known.
    """

    container: str
    attempt: int
    started_at: float
    ended_at: float
    ready_at: float | None
    exit_code: int | None
    out_of_memory: bool
    reason: str | None
    hint: str | None = None
    log: str = ""


def exits(pod: Json, events: Sequence[Json], history: PodHistory, budget_s: float) -> tuple[Exit, ...]:
    """At most the last two exits, oldest first. ``budget_s``: how long the startup probe allows for
    loading."""
    fetches = ended_count(pod, FETCHER)
    serves = ended_count(pod, SERVER)
    container, count, before = (SERVER, serves, fetches) if serves else (FETCHER, fetches, 0)
    if not count:
        return ()
    last = _last(pod, container)
    newest = _exit(pod, container, before + count, last, events, history, budget_s)
    if count == 1:
        return (newest,)
    earlier = history.ended.get((pod["metadata"]["uid"], container), ())
    older = [one for one in earlier if one.get("containerID") != last.get("containerID")]
    if older:
        return _exit(pod, container, before + count - 1, older[-1], events, history, budget_s), newest
    # Nobody observed it: it exited before the container whose exit is reported was started.
    unknown = Exit(container, before + count - 1, created(pod), newest.started_at, None, None, False, None)
    return unknown, newest


def ended_count(pod: Json, container: str) -> int:
    """How often the container has failed. The kubelet counts a restart when it creates the next
    container."""
    if container == FETCHER and (state(pod, container, "terminated") or {}).get("exitCode") == 0:
        return int(status(pod, container).get("restartCount", 0))
    waits_after = state(pod, container, "waiting") and state(pod, container, "terminated", last=True)
    over = bool(state(pod, container, "terminated") or waits_after)
    return int(status(pod, container).get("restartCount", 0)) + over


def terminated(pod: Json, container: str) -> Json | None:
    """The newest terminated state, of the current container or the previous one."""
    now = state(pod, container, "terminated")
    if now is not None and (container == SERVER or now.get("exitCode") != 0):
        return now
    return state(pod, container, "terminated", last=True)


def _last(pod: Json, container: str) -> Json:
    return terminated(pod, container) or {}


def _exit(
    pod: Json,
    container: str,
    attempt: int,
    ended_state: Json,
    events: Sequence[Json],
    history: PodHistory,
    budget_s: float,
) -> Exit:
    started = seconds(ended_state.get("startedAt")) or created(pod)
    ended = seconds(ended_state.get("finishedAt")) or started
    ready_at = history.ready_at.get(str(ended_state.get("containerID")))
    if container == SERVER and ready_at is None and ended - started > budget_s:
        # Nobody observed it; but if it had never been ready, the startup probe would have killed
        # it.
        ready_at = started + budget_s
    code = exit_code(ended_state.get("exitCode"))
    log = history.logs.get(str(ended_state.get("containerID"))) or str(ended_state.get("message") or "")
    memory = ended_state.get("reason") == "OOMKilled"
    if memory:
        reason: str | None = _out_of_memory(pod, container)
        hint = None
    elif container == FETCHER:
        reason, hint = _fetch_failure(ended_state, code)
    else:
        reason, hint = _server_failure(ended_state, log, code, events, started, ended, ready_at, budget_s), None
    return Exit(container, attempt, started, ended, ready_at, code, memory, reason, hint, log)


def exit_code(code: int | None) -> int | None:
    """Containers report a signal as 128 + its number; returns the negative number."""
    return 128 - code if code is not None and code in _SIGNALS else code


def memory_limit(pod: Json, container: str) -> str:
    return str((spec(pod, container).get("resources") or {}).get("limits", {}).get("memory", "the node's memory"))


def _out_of_memory(pod: Json, container: str) -> str:
    return f"{container} was killed because it exceeded its memory limit of {memory_limit(pod, container)}"


def _fetch_failure(ended_state: Json, code: int | None) -> tuple[str, str | None]:
    """The fetcher's message: a line of JSON in the termination message."""
    report = fetcher_message(ended_state)
    if report is not None and report.get("error"):
        return f"the model could not be downloaded: {report['error']}", report.get("hint")
    last = str(ended_state.get("message") or "").strip().splitlines()
    return f"the model could not be downloaded: {last[-1] if last else f'exit code {code}'}", None


def fetcher_message(ended_state: Json) -> dict[str, Any] | None:
    """The fetcher's JSON in its termination message, None if there is none."""
    for line in reversed(str(ended_state.get("message") or "").splitlines()):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            return value
    return None


def _server_failure(
    ended_state: Json,
    log: str,
    code: int | None,
    events: Sequence[Json],
    started: float,
    ended: float,
    ready_at: float | None,
    budget_s: float,
) -> str:
    if ended_state.get("reason") in ("StartError", "ContainerCannotRun"):
        return f"the container cannot start: {ended_state.get('message')}"
    if probe := _killed_by_probe(events, started, ended):
        return probe
    if ready_at is None and ended - started >= budget_s:
        return f"its models were not ready {budget_s:.0f} s after its start, so the kubelet killed it"
    return exit_reasons.reason(log, code, was_ready=ready_at is not None)


def _killed_by_probe(events: Sequence[Json], started: float, ended: float) -> str | None:
    """The kubelet kills a container whose startup or liveness probe fails, and reports it in
    events."""
    recent = [one for one in events if started <= event_time(one) and abs(event_time(one) - ended) <= _PROBE_WINDOW_S]
    for kind in ("liveness", "startup"):
        if any(one.get("reason") == "Killing" and f"failed {kind} probe" in one.get("message", "") for one in recent):
            unhealthy = [one.get("message", "") for one in recent if one.get("reason") == "Unhealthy"]
            words = [one for one in unhealthy if one.lower().startswith(f"{kind} probe failed")]
            text = words[-1].strip() if words else f"{kind.capitalize()} probe failed"
            return f"the kubelet killed it: {text}"
    return None


def event_time(event: Json) -> float:
    """When the event last occurred, in seconds since the epoch."""
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    latest = next((time for time in times if time), event["metadata"].get("creationTimestamp"))
    return seconds(latest) or 0.0
