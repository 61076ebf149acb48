"""Rollouts as rows.

Decides that an endpoint has one at a time, that a step and its traffic are stored together, and how
many are kept. Works inside a write transaction of its caller. Must not know how a rollout goes on.
"""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, select, update

from amphitrite.controlplane.core.history import traffic_history
from amphitrite.controlplane.core.history.revisions import Author
from amphitrite.controlplane.core.history.traffic_history import Traffic
from amphitrite.controlplane.core.observed.status import Ref
from amphitrite.controlplane.core.rollouts import rollout_json, traffic_rollout
from amphitrite.controlplane.core.rollouts.traffic_rollout import Rollout
from amphitrite.controlplane.store.sql.tables import rollouts
from amphitrite.controlplane.store.state import changes, resource_rows
from amphitrite.dataplane.table.routing_table import Comparison
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

#: The newest of an endpoint.
KEPT = 50


def start(connection: Connection, rollout: Rollout) -> Rollout:
    """Stores it with the next number. Raises Error Conflict while another one goes on."""
    endpoint = key(rollout.endpoint)
    known = list_all(connection, endpoint)
    if known and known[0].is_active:
        raise going_on(known[0])
    rollout = replace(rollout, number=known[0].number + 1 if known else 1)
    connection.execute(
        insert(rollouts).values(
            endpoint=endpoint,
            number=rollout.number,
            is_active=rollout.is_active,
            content=rollout_json.to_json(rollout),
        )
    )
    of_endpoint = rollouts.c.endpoint == endpoint
    connection.execute(delete(rollouts).where(of_endpoint & (rollouts.c.number <= rollout.number - KEPT)))
    return rollout


def change(
    connection: Connection, before: Rollout, after: Rollout, traffic: Traffic | None, by: Author, now: float
) -> None:
    """Replaces ``before``. Raises Error Conflict if it is not what is stored."""
    ref = Ref(key(before.endpoint))
    row = connection.execute(select(rollouts.c.content).where(_at(before))).first()
    if row is None or rollout_json.from_json(row.content) != before:
        raise Error("Conflict", "the rollout has changed since it was read", target=before.endpoint)
    content = rollout_json.to_json(after)
    connection.execute(update(rollouts).where(_at(before)).values(is_active=after.is_active, content=content))
    if traffic is not None:
        endpoint = resource_rows.get(connection, ref)
        document = traffic_history.with_traffic(endpoint["document"], traffic)
        changes.put(connection, ref, document, {}, if_match=None, if_none_match=False, now=now, by=by)


def list_all(connection: Connection, endpoint: str) -> list[Rollout]:
    """Newest first."""
    query = select(rollouts.c.content).where(rollouts.c.endpoint == endpoint).order_by(rollouts.c.number.desc())
    return [rollout_json.from_json(row.content) for row in connection.execute(query)]


def active(connection: Connection) -> list[Rollout]:
    query = select(rollouts.c.content).where(rollouts.c.is_active).order_by(rollouts.c.endpoint)
    return [rollout_json.from_json(row.content) for row in connection.execute(query)]


def comparisons(connection: Connection) -> dict[str, Comparison]:
    """What rollouts compare now, by the endpoint's lower-case name."""
    found = {key(one.endpoint): traffic_rollout.comparison(one) for one in active(connection)}
    return {name: one for name, one in found.items() if one is not None}


def forget(connection: Connection, ref: Ref) -> None:
    """Removes those of an endpoint that is gone."""
    if ref.deployment is None:
        connection.execute(delete(rollouts).where(rollouts.c.endpoint == ref.endpoint))


def going_on(rollout: Rollout) -> Error:
    """The refusal of whatever would come in between."""
    name = rollout.endpoint
    return Error(
        "Conflict",
        f"a rollout of endpoint '{name}' to {rollout.plan.to} goes on: {rollout.reason}",
        target=name,
        hint=f"wait for it: ml online-endpoint rollout status -n {name} -w; or end it, which brings back the traffic "
        f"from before: ml online-endpoint rollout abort -n {name}",
    )


def _at(rollout: Rollout) -> ColumnElement[bool]:
    return and_(rollouts.c.endpoint == key(rollout.endpoint), rollouts.c.number == rollout.number)
