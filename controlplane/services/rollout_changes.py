"""Starting rollouts, what people ask of them, and the traffic that belongs to one.

Decides which change of traffic becomes a rollout, and what is refused while one goes on. Call it
inside ``store.exclusive()``. Must not know HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amphitrite.controlplane.core.history import traffic_history
from amphitrite.controlplane.core.history.revisions import Author
from amphitrite.controlplane.core.history.traffic_history import Traffic
from amphitrite.controlplane.core.rollouts import requests, rollout_plan, traffic_rollout
from amphitrite.controlplane.core.rollouts.requests import Request
from amphitrite.controlplane.core.rollouts.rollout_plan import RolloutPlan
from amphitrite.controlplane.core.rollouts.traffic_rollout import Rollout
from amphitrite.controlplane.services import wire_documents
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.state.store import Record
from amphitrite.dataplane.metrics.counters import BUCKETS_S
from amphitrite.schemas.errors import Error, Violation
from amphitrite.schemas.names import key

Document = Mapping[str, Any]


def start(services: Services, endpoint: str, to: str, written: Document, by: Author) -> Rollout:
    """Begin a rollout of ``endpoint`` to deployment ``to``. ``written``: ``rollout_plan.FIELDS``.

    Raises Error: ResourceNotFound, Conflict (another one goes on), BadArgument, UserError.
    """
    record = services.store.get_endpoint(endpoint)
    names = _usable(services, record, to)
    before = traffic_history.traffic_of(record.document)
    plan = rollout_plan.make(to, written, before, None, names, BUCKETS_S)
    _require_comparable(services, record.name, plan)
    return services.store.start_rollout(_begun(services, record, plan, by))


def ask(services: Services, endpoint: str, number: int, request: Request, full: bool, by: Author) -> Rollout:
    """What a person wants of rollout ``number``. Raises Error ResourceNotFound or Conflict."""
    rollout = find(services, endpoint, number)
    names = [one.name for one in services.store.list_deployments(endpoint) if not one.deleting]
    now = services.clock()
    one = requests.ask(rollout, request, full=full, reason=by.reason, deployments=names, now=now)
    author = Author(by.name, one.rollout.reason, "rollout")
    services.store.change_rollout(rollout, one.rollout, one.traffic, by=author, now=now)
    return one.rollout


def find(services: Services, endpoint: str, number: int) -> Rollout:
    """Raises Error ResourceNotFound."""
    for rollout in services.store.rollouts(endpoint):
        if rollout.number == number:
            return rollout
    raise Error(
        "ResourceNotFound",
        f"endpoint '{endpoint}' has no rollout {number}",
        target=endpoint,
        hint=f"run `ml online-endpoint rollout list -n {endpoint}` to see those that are kept",
    )


def of_document(
    services: Services, former: Record | None, document: dict[str, Any], by: Author
) -> tuple[dict[str, Any], Rollout | None]:
    """What to store of an endpoint's ``document``, and the rollout that begins with it.

    With ``rollout`` in the document, a change of the live traffic becomes a rollout, and the
    traffic stays as it is. While one goes on, its traffic in the document is that of its end.

    Raises Error:
    Conflict (a rollout goes on), InvalidDocument.
    """
    if former is None:
        return document, None
    before, wanted = traffic_history.traffic_of(former.document), traffic_history.traffic_of(document)
    if _same(before, wanted):
        return document, None
    going_on = active(services, former.name)
    written = document.get("rollout")
    if going_on is not None:
        if written is None or not _leads_to(going_on, before, wanted):
            raise refusal(going_on)
        return traffic_history.with_traffic(document, before), None
    if written is None or not before.live or _lower(before.live) == _lower(wanted.live):
        return document, None
    stays = Traffic(before.live, wanted.mirrored)
    rollout = _begun(services, former, _plan_of(services, former, stays, wanted, written), by)
    return traffic_history.with_traffic(document, stays), rollout


def require_none(services: Services, endpoint: str) -> None:
    """Raises Error Conflict while a rollout goes on."""
    if (rollout := active(services, endpoint)) is not None:
        raise refusal(rollout)


def active(services: Services, endpoint: str) -> Rollout | None:
    newest = next(iter(services.store.rollouts(endpoint)), None)
    return newest if newest is not None and newest.is_active else None


def refusal(rollout: Rollout) -> Error:
    """Why the traffic cannot be changed by hand now."""
    name = rollout.endpoint
    return Error(
        "Conflict",
        f"the traffic of endpoint '{name}' belongs to a rollout to {rollout.plan.to}, which goes on: {rollout.reason}",
        target=name,
        hint=f"end it, which brings back the traffic from before at once: ml online-endpoint rollout abort -n {name}; "
        f"or move on: ml online-endpoint rollout promote -n {name}",
    )


def _plan_of(services: Services, former: Record, before: Traffic, wanted: Traffic, written: Document) -> RolloutPlan:
    """Raises Error InvalidDocument."""
    growing = rollout_plan.grown(before.live, wanted.live)
    if len(growing) != 1:
        what = "that of none does" if not growing else f"those of {', '.join(sorted(growing))} do"
        message = f"a rollout raises the share of one deployment, but {what}"
        hint = "change the traffic of one deployment at a time, or remove rollout"
        wire_documents.refuse([Violation(("traffic",), message, hint)], former.name)
    try:
        names = _usable(services, former, growing[0])
        plan = rollout_plan.make(growing[0], written, before, wanted.live, names, BUCKETS_S)
        _require_comparable(services, former.name, plan)
        return plan
    except Error as error:
        if error.code != "BadArgument":
            raise
        field, _, message = error.message.partition(": ")
        wire_documents.refuse([Violation(("rollout", field), message, error.hint)], former.name)
        raise


def _begun(services: Services, record: Record, plan: RolloutPlan, by: Author) -> Rollout:
    return traffic_rollout.begin(record.name, plan, services.clock(), by.name, by.reason)


def _usable(services: Services, record: Record, to: str) -> list[str]:
    """The names of the endpoint's deployments. Raises Error UserError if ``to`` has failed: it
    would never get traffic."""
    found = [one for one in services.store.list_deployments(record.name) if not one.deleting]
    for one in found:
        if one.ref.deployment == key(to) and one.status.state == "Failed":
            message = f"deployment {one.name} has failed: {one.status.message or 'see its status'}"
            hint = f"repair it first: ml online-deployment show -n {one.name} -e {record.name}"
            raise Error("UserError", message, target=f"{record.name}/{one.name}", hint=hint)
    return [one.name for one in found]


def _require_comparable(services: Services, endpoint: str, plan: RolloutPlan) -> None:
    """Raises Error BadArgument if the answers of a deployment cannot be compared, as
    ``routing_table.comparable`` says of targets."""
    names = () if plan.answers is None else (plan.answers.base, plan.answers.candidate)
    for one in services.store.load_world().deployments if names else ():
        if one.endpoint != key(endpoint) or one.name not in names:
            continue
        container = one.workload.container
        if one.sequences or (container is not None and container.repository is None):
            what = "keeps sequences" if one.sequences else "is a server of its own image"
            raise Error(
                "BadArgument",
                f"answer_share: {one.name} {what}, so no request can be sent to it twice or compared",
                target=f"{endpoint}/{one.name}",
                hint="leave out the options about answers",
            )


def _leads_to(rollout: Rollout, before: Traffic, wanted: Traffic) -> bool:
    return _lower(rollout.plan.target) == _lower(wanted.live) and (
        _lower(wanted.mirrored) in (_lower(before.mirrored), _lower(rollout.plan.mirrored))
    )


def _same(one: Traffic, other: Traffic) -> bool:
    return _lower(one.live) == _lower(other.live) and _lower(one.mirrored) == _lower(other.mirrored)


def _lower(shares: traffic_history.Shares) -> dict[str, int]:
    return {key(name): percent for name, percent in shares.items()}
