"""How the containers of a pod have ended: what the kubelet tells, as facts and as a sentence.

Decides which endings a pod tells of, and which of its words explain one. Must not know slots, nor living instances.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amphitrite.controlplane.runtimes import exit_reasons
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_facts import Json, created, seconds, spec, state, status
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_history import Seen
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import FETCHER, SERVER

#: A probe's failure explains the end of a container when it was told that long before it at most.
_PROBE_WINDOW_S = 60.0
_SIGNALS = range(129, 193)


@dataclass(frozen=True, slots=True)
class Exit:
    """One ended container. ``attempt`` counts from 1 over both containers. ``exit_code`` is negative for a signal,
    as in ``subprocess``; None when it is not told any more. ``log``: its last lines, as far as they are known."""

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


def exits(pod: Json, events: Sequence[Json], seen: Seen, budget_s: float) -> tuple[Exit, ...]:
    """The last two endings at most, oldest first. ``budget_s``: how long the startup probe lets it load."""
    fetches = ended_count(pod, FETCHER)
    serves = ended_count(pod, SERVER)
    container, count, before = (SERVER, serves, fetches) if serves else (FETCHER, fetches, 0)
    if not count:
        return ()
    told = _last(pod, container)
    newest = _exit(pod, container, before + count, told, events, seen, budget_s)
    if count == 1:
        return (newest,)
    known = seen.ended.get((pod["metadata"]["uid"], container), ())
    older = [one for one in known if one.get("containerID") != told.get("containerID")]
    if older:
        return _exit(pod, container, before + count - 1, older[-1], events, seen, budget_s), newest
    # Nobody has seen it: it ended before the one began that is told of.
    vague = Exit(container, before + count - 1, created(pod), newest.started_at, None, None, False, None)
    return vague, newest


def ended_count(pod: Json, container: str) -> int:
    """How often it has ended by failing. The kubelet counts a restart when the next container is made."""
    if container == FETCHER and (state(pod, container, "terminated") or {}).get("exitCode") == 0:
        return int(status(pod, container).get("restartCount", 0))
    waits_after = state(pod, container, "waiting") and state(pod, container, "terminated", last=True)
    over = bool(state(pod, container, "terminated") or waits_after)
    return int(status(pod, container).get("restartCount", 0)) + over


def terminated(pod: Json, container: str) -> Json | None:
    """The newest ending, of the present container or the one before."""
    now = state(pod, container, "terminated")
    if now is not None and (container == SERVER or now.get("exitCode") != 0):
        return now
    return state(pod, container, "terminated", last=True)


def _last(pod: Json, container: str) -> Json:
    return terminated(pod, container) or {}


def _exit(
    pod: Json, container: str, attempt: int, told: Json, events: Sequence[Json], seen: Seen, budget_s: float
) -> Exit:
    started = seconds(told.get("startedAt")) or created(pod)
    ended = seconds(told.get("finishedAt")) or started
    ready_at = seen.ready_at.get(str(told.get("containerID")))
    if container == SERVER and ready_at is None and ended - started > budget_s:
        # Nobody saw it; but unless it had been ready, the startup probe would have ended it.
        ready_at = started + budget_s
    code = exit_code(told.get("exitCode"))
    log = seen.logs.get(str(told.get("containerID"))) or str(told.get("message") or "")
    memory = told.get("reason") == "OOMKilled"
    if memory:
        reason: str | None = _out_of_memory(pod, container)
        hint = None
    elif container == FETCHER:
        reason, hint = _fetch_failure(told, code)
    else:
        reason, hint = _server_failure(told, log, code, events, started, ended, ready_at, budget_s), None
    return Exit(container, attempt, started, ended, ready_at, code, memory, reason, hint, log)


def exit_code(told: int | None) -> int | None:
    """What containers tell as 128 + signal, as a negative number."""
    return 128 - told if told is not None and told in _SIGNALS else told


def memory_limit(pod: Json, container: str) -> str:
    return str((spec(pod, container).get("resources") or {}).get("limits", {}).get("memory", "the node's memory"))


def _out_of_memory(pod: Json, container: str) -> str:
    return f"{container} was killed: it needed more memory than its limit of {memory_limit(pod, container)}"


def _fetch_failure(told: Json, code: int | None) -> tuple[str, str | None]:
    """In the fetcher's words: a line of JSON in the termination message."""
    words = fetcher_words(told)
    if words is not None and words.get("error"):
        return f"the model could not be fetched: {words['error']}", words.get("hint")
    last = str(told.get("message") or "").strip().splitlines()
    return f"the model could not be fetched: {last[-1] if last else f'exit code {code}'}", None


def fetcher_words(told: Json) -> dict[str, Any] | None:
    """What the fetcher has left in its termination message."""
    for line in reversed(str(told.get("message") or "").splitlines()):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            return value
    return None


def _server_failure(
    told: Json,
    log: str,
    code: int | None,
    events: Sequence[Json],
    started: float,
    ended: float,
    ready_at: float | None,
    budget_s: float,
) -> str:
    if told.get("reason") in ("StartError", "ContainerCannotRun"):
        return f"the container cannot be started: {told.get('message')}"
    if probe := _killed_by_probe(events, started, ended):
        return probe
    if ready_at is None and ended - started >= budget_s:
        return f"its models were not ready {budget_s:.0f} s after its start, so the kubelet ended it"
    return exit_reasons.reason(log, code, was_ready=ready_at is not None)


def _killed_by_probe(events: Sequence[Json], started: float, ended: float) -> str | None:
    """The kubelet kills for a startup or liveness probe that fails, and says so in events."""
    told = [one for one in events if started <= event_time(one) and abs(event_time(one) - ended) <= _PROBE_WINDOW_S]
    for kind in ("liveness", "startup"):
        if any(one.get("reason") == "Killing" and f"failed {kind} probe" in one.get("message", "") for one in told):
            unhealthy = [one.get("message", "") for one in told if one.get("reason") == "Unhealthy"]
            words = [one for one in unhealthy if one.lower().startswith(f"{kind} probe failed")]
            said = words[-1].strip() if words else f"{kind.capitalize()} probe failed"
            return f"the kubelet ended it: {said}"
    return None


def event_time(event: Json) -> float:
    """When it was last told."""
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    found = next((time for time in times if time), event["metadata"].get("creationTimestamp"))
    return seconds(found) or 0.0
