"""Scales of deployments, and their events, as rows.

Decides that of two writers of one version one fails, and how many events are kept. Works inside a
transaction of its caller. Must not know how a number is found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, select, update

from amphitrite.controlplane.core.desired import scale_settings
from amphitrite.controlplane.core.desired.scale_settings import TARGET_UTILIZATION
from amphitrite.controlplane.core.observed.status import Ref
from amphitrite.controlplane.core.scaling.scales import (
    AUTOSCALE_SETTING,
    InstanceCounts,
    Scale,
    ScaleChange,
    ScaleEvent,
    count_in_force,
)
from amphitrite.controlplane.store.sql.tables import deployment_scales, deployments, endpoints, scale_events
from amphitrite.controlplane.store.state.resource_rows import Row
from amphitrite.schemas.errors import Error

#: The newest of a deployment.
KEPT_EVENTS = 1000


def all_scales(connection: Connection) -> dict[Ref, Scale]:
    rows = connection.execute(select(deployment_scales)).mappings()
    return {Ref(row["endpoint"], row["deployment"]): _scale(row) for row in rows}


def find(connection: Connection, ref: Ref) -> Scale | None:
    row = connection.execute(select(deployment_scales).where(_of(deployment_scales, ref))).mappings().first()
    return None if row is None else _scale(row)


def write(connection: Connection, change: ScaleChange) -> Scale:
    """Stores ``change``. Raises Error Conflict if the scale is not ``change.before`` any more."""
    ref, before = change.ref, change.before
    version = 1 if before is None else before.version + 1
    values = {**{name: getattr(change.after, name) for name in _COLUMNS}, "version": version}
    stored = find(connection, ref)
    if (None if stored is None else stored.version) != (None if before is None else before.version):
        raise Error("Conflict", "the scale has changed since it was read", target=f"{ref.endpoint}/{ref.deployment}")
    if before is None:
        place = {"endpoint": ref.endpoint, "deployment": ref.deployment}
        connection.execute(insert(deployment_scales).values(**place, **values))
    else:
        connection.execute(update(deployment_scales).where(_of(deployment_scales, ref)).values(**values))
    if change.event is not None:
        _add_event(connection, ref, change.event)
    return replace(change.after, version=version)


def remove(connection: Connection, ref: Ref) -> None:
    """Ends the scaler's say. The events stay."""
    connection.execute(delete(deployment_scales).where(_of(deployment_scales, ref)))


def forget(connection: Connection, ref: Ref) -> None:
    """Removes everything about a deployment."""
    remove(connection, ref)
    connection.execute(delete(scale_events).where(_of(scale_events, ref)))


def follow(connection: Connection, ref: Ref, former: Row | None, document: Mapping[str, Any], now: float) -> None:
    """Begins or ends the say of ``target_utilization`` where a document does. The number begins
    with the one that was in force, or with a new document's ``instance_count``."""
    scale, settings = find(connection, ref), scale_settings.of_document(document)
    if scale is not None and scale.scaler == AUTOSCALE_SETTING and settings is None:
        _follow_user(connection, ref, scale, document, now)
        return
    if scale is not None and scale.scaler not in (TARGET_UTILIZATION, AUTOSCALE_SETTING):
        return
    if settings is None:
        remove(connection, ref)
        return
    before = None if former is None else scale_settings.of_document(former["document"])
    if scale is not None and scale.scaler == TARGET_UTILIZATION and before is not None and before.mode == settings.mode:
        return
    count = int(document.get("instance_count", 1))
    if settings.mode == "apply":
        stored = count if former is None else int(former["document"].get("instance_count", 1))
        count = settings.limited(max(count_in_force(before, stored, scale), 1))
    write(connection, ScaleChange(ref, scale, Scale(count, TARGET_UTILIZATION, changed_at=now, used_at=now)))


def _follow_user(connection: Connection, ref: Ref, scale: Scale, document: Mapping[str, Any], now: float) -> None:
    """A number in a document is the user's, as in Azure. A setting limits it when it is asked next.
    Clients that change something else send the number that is in force."""
    wanted = document.get("instance_count")
    if wanted is None or int(wanted) == scale.count:
        return
    reason = f"instance_count was set to {wanted}"
    event = ScaleEvent(now, scale.count, int(wanted), reason, "user")
    write(connection, ScaleChange(ref, scale, replace(scale, count=int(wanted), reason=reason), event))


def events(connection: Connection, ref: Ref) -> list[ScaleEvent]:
    """Oldest first."""
    query = select(scale_events).where(_of(scale_events, ref)).order_by(scale_events.c.number)
    return [
        ScaleEvent(row["at"], row["before"], row["after"], row["reason"], row["by"], row["mode"])
        for row in connection.execute(query).mappings()
    ]


def instance_counts(connection: Connection) -> list[InstanceCounts]:
    """Of all deployments, sorted."""
    scales = all_scales(connection)
    query = select(endpoints.c.name.label("of"), deployments).join(endpoints, endpoints.c.key == deployments.c.endpoint)
    found = []
    for row in connection.execute(query.order_by(deployments.c.endpoint, deployments.c.key)).mappings():
        scale, document = scales.get(Ref(row["endpoint"], row["key"])), row["document"]
        settings, own = scale_settings.of_document(document), int(document.get("instance_count", 1))
        wanted, ready = count_in_force(settings, own, scale), int(row["facts"].get("ready_instances", 0))
        recommended = None if scale is None else scale.recommended
        found.append(InstanceCounts(row["of"], row["name"], wanted, ready, recommended))
    return found


#: The columns that are a scale's fields.
_COLUMNS = (
    *("count", "scaler", "reason", "changed_at", "shrunk_at", "used_at", "start_s"),
    *("recommended", "version"),
)


def _add_event(connection: Connection, ref: Ref, event: ScaleEvent) -> None:
    newest = select(func.max(scale_events.c.number)).where(_of(scale_events, ref))
    number = (connection.execute(newest).scalar() or 0) + 1
    connection.execute(
        insert(scale_events).values(
            endpoint=ref.endpoint,
            deployment=ref.deployment,
            number=number,
            at=event.at,
            before=event.before,
            after=event.after,
            reason=event.reason,
            by=event.by,
            mode=event.mode,
        )
    )
    old = _of(scale_events, ref) & (scale_events.c.number <= number - KEPT_EVENTS)
    connection.execute(delete(scale_events).where(old))


def _scale(row: Row) -> Scale:
    return Scale(**{name: row[name] for name in _COLUMNS})


def _of(table: Any, ref: Ref) -> ColumnElement[bool]:
    return and_(table.c.endpoint == ref.endpoint, table.c.deployment == ref.deployment)
