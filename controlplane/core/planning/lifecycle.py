"""The status of endpoints and deployments, computed from facts.

Decides between Creating, Updating, Scaling, Succeeded, Failed and Deleting, and the message that
users read: first the cause of a trouble, on a line of its own, then how far the deployment is. No
code sets a state by hand: equal facts give equal statuses. Must not know operations, HTTP or the
store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from amphitrite.controlplane.core.capacity import capacity_policy
from amphitrite.controlplane.core.desired.resources import Deployment, Endpoint
from amphitrite.controlplane.core.observed.observations import ModelFetch
from amphitrite.controlplane.core.observed.status import State, Status
from amphitrite.controlplane.core.planning.routing import is_effective
from amphitrite.controlplane.core.planning.supply import Supply
from amphitrite.dataplane.table.routing_table import Route
from amphitrite.schemas.errors import Error


def deployment_status(supply: Supply, *, in_force: bool, rejected: str | None) -> Status:
    """The status of a deployment.

    ``in_force``: every live proxy has acknowledged the table that names this deployment's
    instances. ``rejected``: why a proxy refused the newest table, None if none did.
    """
    deployment = supply.deployment
    facts = _facts(supply)
    if supply.failing:
        return Status("Failed", deployment.generation, "Failed", _retry_note(supply), _failure(supply), facts)
    if supply.complete and in_force:
        if deployment.instance_count == 0:
            return Status("Succeeded", deployment.generation, *_at_rest(deployment), None, facts)
        return Status("Succeeded", deployment.generation, "Ready", _ready(supply), None, facts)
    if rejected is not None:
        error = _rejected(rejected, f"{deployment.endpoint}/{deployment.name}")
        return Status("Failed", deployment.generation, "Failed", error.message, error, facts)
    phase, message = _progress(supply)
    if deployment.observed_generation >= deployment.generation and deployment.ever_succeeded:
        # The change itself is finished; an instance is being restarted.
        return Status("Succeeded", deployment.generation, phase, message, None, facts)
    return Status(_changing(supply), deployment.observed_generation, phase, message, None, facts)


def _changing(supply: Supply) -> State:
    if not supply.deployment.ever_succeeded:
        return "Creating"
    return "Updating" if supply.replacing or supply.routed != supply.deployment.workload else "Scaling"


def _progress(supply: Supply) -> tuple[str, str]:
    count = supply.deployment.instance_count
    if supply.complete:
        return "Routing", "waiting for the proxies to apply the route"
    if count == 0:
        what = "is being paused" if supply.deployment.pause is not None else "falls asleep"
        ending = _count(supply.ending)
        return "Draining", f"it {what}: {ending} left, to end when requests in flight have ended"
    if supply.capacity_faults:
        policy, faults = supply.deployment.capacity_policy, supply.capacity_faults
        message = capacity_policy.capacity_message(policy, faults, supply.former_ready)
        return "Waiting", _lines(message, f"{supply.ready} of {count} instances ready")
    if supply.retry_at is not None and supply.failures:
        return "Retrying", _retry_note(supply)
    cause = supply.reason if supply.failures else None
    # Short: a line of progress holds it and the names of the endpoint and the deployment.
    phase = "Starting" if supply.missing else "Loading"
    if supply.hold == "now":
        cause = _lines(cause, "requests are held until an instance is ready")
    return phase, _lines(cause, _scaled(supply, f"{supply.ready} of {count} instances ready"))


def _scaled(supply: Supply, state: str) -> str:
    """``state``, and why a scaler has changed the number of instances last."""
    reason = supply.deployment.scale_reason
    return f"{state}; {reason}" if reason else state


def _lines(cause: str | None, state: str) -> str:
    return f"{cause}\n{state}" if cause else state


def _at_rest(deployment: Deployment) -> tuple[str, str]:
    """Phase and message of a deployment of which no instance is wanted, and none runs."""
    if (pause := deployment.pause) is not None:
        who = f" by {pause.by}" if pause.by else ""
        return "Paused", f"paused{who} {_clock(pause.at)}; requests are answered 503 until it is resumed"
    return "Asleep", "no instance runs; the next request wakes it"


def _ready(supply: Supply) -> str:
    """The message of a ready deployment, with notes such as a GPU type that runs on the CPU."""
    count = supply.deployment.instance_count
    ready = f"{count} instance ready" if count == 1 else f"{count} instances ready"
    return "; ".join([_scaled(supply, ready), *supply.notes, *_fetches([fetch for _, fetch in supply.fetches])])


def _fetches(fetches: Sequence[ModelFetch]) -> list[str]:
    """How the instances got the model, where it was transferred."""
    loaded = [f for f in fetches if not f.cached]
    notes = []
    if loaded:
        seconds = max(f.seconds for f in loaded)
        notes.append(f"model downloaded by {_count(len(loaded))}: {loaded[0].size / 2**20:.1f} MiB in {seconds:.1f} s")
    if len(loaded) < len(fetches):
        notes.append(f"model found in the node's cache by {_count(len(fetches) - len(loaded))}")
    return notes


def _count(instances: int) -> str:
    return f"{instances} instance" if instances == 1 else f"{instances} instances"


def _retry_note(supply: Supply) -> str:
    count = supply.deployment.instance_count
    if (fault := supply.obstacle) is not None:
        return _lines(fault.message, f"{supply.ready} of {count} instances ready")
    note = f"{supply.ready} of {count} instances ready; failures in a row: {supply.failures}"
    if supply.retry_at is not None:
        # The absolute time, so that the status does not change in every pass.
        note += f"; the next attempt starts {_clock(supply.retry_at)}"
    return _lines(supply.reason, note)


def _clock(at: float) -> str:
    minutes, seconds = divmod(int(at), 60)
    return f"at {minutes // 60 % 24:02d}:{minutes % 60:02d}:{seconds:02d} UTC"


def _failure(supply: Supply) -> Error:
    deployment = supply.deployment
    consequence = f"deployment '{deployment.name}' has an instance that does not become ready"
    if (fault := supply.obstacle) is not None:
        return Error(
            fault.code,
            _lines(fault.message, consequence),
            target=f"{deployment.endpoint}/{deployment.name}",
            hint=fault.hint or _logs(supply),
        )
    reason = supply.reason or "the server exited without an error message"
    crashed = deployment.ever_succeeded and supply.routed == deployment.workload
    return Error(
        "DeploymentCrashLoopBackOff" if crashed else "ResourceNotReady",
        _lines(reason, consequence),
        target=f"{deployment.endpoint}/{deployment.name}",
        hint=_logs(supply),
    )


def _logs(supply: Supply) -> str:
    return f"see its log: ml online-deployment get-logs -n {supply.deployment.name} -e {supply.deployment.endpoint}"


def _facts(supply: Supply) -> Mapping[str, Any]:
    facts: dict[str, Any] = {"ready_instances": supply.ready}
    if (pause := supply.deployment.pause) is not None:
        facts["paused"] = {"at": pause.at, "by": pause.by}
    if supply.engine:
        facts["engine"] = supply.engine
    if supply.notes:
        facts["notes"] = list(supply.notes)
    if supply.fetches:
        facts["model_fetches"] = {instance: asdict(fetch) for instance, fetch in supply.fetches}
    return facts


def _rejected(reason: str, target: str) -> Error:
    return Error("RoutingRejected", f"a proxy refused the routing table: {reason}", target=target)


def endpoint_status(
    endpoint: Endpoint, route: Route, supplies: Sequence[Supply], *, in_force: bool, rejected: str | None
) -> Status:
    """The status of an endpoint. ``route``: its route in the table.

    New traffic waits until the deployments that it names are ready. If one of them has failed, the
    change has failed and the previous traffic stays in force. Until the new traffic takes effect,
    the facts have the shares that are in force.
    """
    if is_effective(endpoint, route):
        if in_force:
            return Status("Succeeded", endpoint.generation, "Ready", "")
        if rejected is not None:
            error = _rejected(rejected, endpoint.name)
            return Status("Failed", endpoint.generation, "Failed", error.message, error)
        return _waiting(endpoint, "Routing", "waiting for the proxies to apply the route")
    shares = {"traffic_in_force": dict(route.split), "mirror_traffic_in_force": dict(route.mirrors)}
    traffic_names = {name for name, _ in (*endpoint.traffic, *endpoint.mirror_traffic)}
    blocking = [s for s in supplies if s.deployment.name in traffic_names and s.routed is None]
    failing = [s for s in blocking if s.failing]
    if failing:
        error = Error(
            "ResourceNotReady",
            _lines(_why(failing[0]), f"traffic names deployment '{failing[0].deployment.name}', which is not ready"),
            target=endpoint.name,
            hint="the previous traffic stays in force; fix the deployment or choose another one",
        )
        return Status("Failed", endpoint.generation, "Failed", error.message, error, shares)
    names = ", ".join(s.deployment.name for s in blocking) or "its deployments"
    return _waiting(endpoint, "Waiting", f"traffic takes effect when {names} can serve", shares)


def _why(supply: Supply) -> str | None:
    return supply.obstacle.message if supply.obstacle is not None else supply.reason


def unreachable_status(deployment: Deployment) -> Status | None:
    """The status while the deployment's compute does not answer.

    None if the outcome of the newest generation is known: that status stays.
    """
    if deployment.observed_generation >= deployment.generation and not deployment.deleting:
        return None
    message = f"compute {deployment.workload.compute} does not answer; its instances keep running"
    state: State = "Updating" if deployment.ever_succeeded else "Creating"
    return Status("Deleting" if deployment.deleting else state, deployment.observed_generation, "Waiting", message)


def _waiting(endpoint: Endpoint, phase: str, message: str, facts: Mapping[str, Any] | None = None) -> Status:
    if endpoint.observed_generation >= endpoint.generation:
        return Status("Succeeded", endpoint.generation, phase, message, None, facts or {})
    state: State = "Updating" if endpoint.observed_generation else "Creating"
    return Status(state, endpoint.observed_generation, phase, message, None, facts or {})
