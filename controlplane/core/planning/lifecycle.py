"""How far a resource is, derived from facts.

Decides Creating, Updating, Scaling, Succeeded, Failed and Deleting, and the sentence a user reads with them. State is
never set by hand: the same facts always give the same status. Must not know operations, HTTP or the store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from amphitrite.controlplane.core.capacity import capacity_policy
from amphitrite.controlplane.core.desired.resources import Deployment, Endpoint
from amphitrite.controlplane.core.observed.observations import ModelFetch
from amphitrite.controlplane.core.observed.status import State, Status
from amphitrite.controlplane.core.planning.routing import effective
from amphitrite.controlplane.core.planning.supply import Supply
from amphitrite.dataplane.table.routing_table import Route
from amphitrite.schemas.errors import Error


def deployment_status(supply: Supply, *, in_force: bool, rejected: str | None) -> Status:
    """``in_force``: every live proxy has acknowledged the table that names this deployment's instances.
    ``rejected``: why a proxy refused the newest table."""
    deployment = supply.deployment
    facts = _facts(supply)
    if supply.failing:
        return Status("Failed", deployment.generation, "Failed", _retry_note(supply), _failure(supply), facts)
    if supply.complete and in_force:
        return Status("Succeeded", deployment.generation, "Ready", _ready(supply), None, facts)
    if rejected is not None:
        error = _rejected(rejected, f"{deployment.endpoint}/{deployment.name}")
        return Status("Failed", deployment.generation, "Failed", error.message, error, facts)
    phase, message = _progress(supply)
    if deployment.observed_generation >= deployment.generation and deployment.ever_succeeded:
        # The change itself is long done; an instance is on its way back.
        return Status("Succeeded", deployment.generation, phase, message, None, facts)
    return Status(_changing(supply), deployment.observed_generation, phase, message, None, facts)


def _changing(supply: Supply) -> State:
    if not supply.deployment.ever_succeeded:
        return "Creating"
    return "Updating" if supply.replacing or supply.routed != supply.deployment.workload else "Scaling"


def _progress(supply: Supply) -> tuple[str, str]:
    count = supply.deployment.instance_count
    if supply.complete:
        return "Routing", "waiting for the proxies to take the route over"
    if supply.scarce:
        message = capacity_policy.told(supply.deployment.capacity_policy, supply.scarce, supply.former)
        return "Waiting", f"{supply.ready} of {count} instances ready; {message}"
    if supply.retry_at is not None and supply.failures:
        return "Retrying", _retry_note(supply)
    again = f"; the attempt before failed: {supply.reason}" if supply.failures and supply.reason else ""
    if supply.missing:
        return "Starting", f"{supply.ready} of {count} instances ready{again}"
    return "Loading", f"{supply.ready} of {count} instances ready, the others load their models{again}"


def _ready(supply: Supply) -> str:
    """With what the user should know of how it is served, such as a GPU type on the CPU."""
    count = supply.deployment.instance_count
    ready = f"{count} instance ready" if count == 1 else f"{count} instances ready"
    return "; ".join([ready, *supply.notes, *_fetches([fetch for _, fetch in supply.fetches])])


def _fetches(fetches: Sequence[ModelFetch]) -> list[str]:
    """How the model came to the instances, where it had to travel."""
    loaded = [f for f in fetches if not f.cached]
    told = []
    if loaded:
        seconds = max(f.seconds for f in loaded)
        told.append(f"model fetched by {len(loaded)}: {loaded[0].size / 2**20:.1f} MiB in {seconds:.1f} s")
    if len(loaded) < len(fetches):
        told.append(f"model found in the node's cache by {len(fetches) - len(loaded)}")
    return told


def _retry_note(supply: Supply) -> str:
    count = supply.deployment.instance_count
    if (fault := supply.obstacle) is not None:
        return f"{supply.ready} of {count} instances ready; {fault.message}"
    note = f"{supply.ready} of {count} instances ready, failures in a row: {supply.failures}"
    if supply.retry_at is not None:
        # Whole steps, so that a status does not change with every look at the clock.
        note += f"; the next start is due {_clock(supply.retry_at)}"
    return note + (f"; {supply.reason}" if supply.reason else "")


def _clock(at: float) -> str:
    minutes, seconds = divmod(int(at), 60)
    return f"at {minutes // 60 % 24:02d}:{minutes % 60:02d}:{seconds:02d} UTC"


def _failure(supply: Supply) -> Error:
    deployment = supply.deployment
    if (fault := supply.obstacle) is not None:
        return Error(
            fault.code,
            f"deployment '{deployment.name}' has an instance that does not come up: {fault.message}",
            target=f"{deployment.endpoint}/{deployment.name}",
            hint=fault.hint or _logs(supply),
        )
    reason = supply.reason or "the server ended without saying why"
    crashed = deployment.ever_succeeded and supply.routed == deployment.workload
    return Error(
        "DeploymentCrashLoopBackOff" if crashed else "ResourceNotReady",
        f"deployment '{deployment.name}' has an instance that does not come up: {reason}",
        target=f"{deployment.endpoint}/{deployment.name}",
        hint=_logs(supply),
    )


def _logs(supply: Supply) -> str:
    return f"ml online-deployment get-logs -n {supply.deployment.name} -e {supply.deployment.endpoint}"


def _facts(supply: Supply) -> Mapping[str, Any]:
    facts: dict[str, Any] = {"ready_instances": supply.ready}
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
    """``route``: what the table says of this endpoint. A traffic map that waits for a deployment keeps waiting, unless
    that deployment has failed: then the change has failed, and the former map stays."""
    if effective(endpoint, route):
        if in_force:
            return Status("Succeeded", endpoint.generation, "Ready", "")
        if rejected is not None:
            error = _rejected(rejected, endpoint.name)
            return Status("Failed", endpoint.generation, "Failed", error.message, error)
        return _waiting(endpoint, "Routing", "waiting for the proxies to take the route over")
    wanted = {name for name, _ in (*endpoint.traffic, *endpoint.mirror_traffic)}
    blocking = [s for s in supplies if s.deployment.name in wanted and s.routed is None]
    failing = [s for s in blocking if s.failing]
    if failing:
        error = Error(
            "ResourceNotReady",
            f"traffic names deployment '{failing[0].deployment.name}', which does not come up: {_why(failing[0])}",
            target=endpoint.name,
            hint="the traffic in force before stays; mend the deployment or name another one",
        )
        return Status("Failed", endpoint.generation, "Failed", error.message, error)
    names = ", ".join(s.deployment.name for s in blocking) or "its deployments"
    return _waiting(endpoint, "Waiting", f"traffic takes effect when {names} can serve")


def _why(supply: Supply) -> str | None:
    return supply.obstacle.message if supply.obstacle is not None else supply.reason


def out_of_sight(deployment: Deployment) -> Status | None:
    """While its compute does not answer; None where the outcome of the newest generation is known: it stays."""
    if deployment.observed_generation >= deployment.generation and not deployment.deleting:
        return None
    message = f"compute {deployment.workload.compute} does not answer; what runs there goes on"
    state: State = "Updating" if deployment.ever_succeeded else "Creating"
    return Status("Deleting" if deployment.deleting else state, deployment.observed_generation, "Waiting", message)


def _waiting(endpoint: Endpoint, phase: str, message: str) -> Status:
    if endpoint.observed_generation >= endpoint.generation:
        return Status("Succeeded", endpoint.generation, phase, message)
    state: State = "Updating" if endpoint.observed_generation else "Creating"
    return Status(state, endpoint.observed_generation, phase, message)
