"""The histories of endpoints and deployments: requests, rows and tables.

Decides what a row shows. Must not know which revisions the server keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from amphitrite.cli.resources import lookups, subjects
from amphitrite.cli.resources.resource_tables import asset_name
from amphitrite.cli.session import near_names, operation_polling
from amphitrite.cli.terminal import durations
from amphitrite.cli.terminal.tables import Column, Table
from amphitrite.schemas.casing import snake

if TYPE_CHECKING:
    from amphitrite.cli.session.rest_client import Client
    from amphitrite.cli.session.session import Session


def traffic(client: Client, endpoint: str) -> list[dict[str, Any]]:
    """A row for each change of an endpoint's traffic, newest first."""
    with near_names.suggested(client, *lookups.endpoint_places(client, endpoint)):
        return _rows(client.get(f"{lookups.endpoint_path(client, endpoint)}/trafficHistory"))


def deployment(client: Client, endpoint: str, name: str) -> list[dict[str, Any]]:
    """A row for each revision of a deployment, newest first."""
    with near_names.suggested(client, *lookups.deployment_places(client, endpoint, name)):
        return _rows(client.get(f"{lookups.deployment_path(client, endpoint, name)}/history"))


def scale(client: Client, endpoint: str, name: str) -> list[dict[str, Any]]:
    """A row for each change of a deployment's number of instances, newest first."""
    with near_names.suggested(client, *lookups.deployment_places(client, endpoint, name)):
        return _rows(client.get(f"{lookups.deployment_path(client, endpoint, name)}/scaleHistory"))


def restore_traffic(session: Session, endpoint: str, revision: int | None, *, no_wait: bool) -> bool:
    """Bring back the traffic of ``revision``; None: that before the last change. Returns and raises
    as ``operation_polling.run_operation``."""
    client = session.client
    address = f"{lookups.endpoint_path(client, endpoint)}/restoreTraffic"
    with near_names.suggested(client, *lookups.endpoint_places(client, endpoint)):
        return operation_polling.run_operation(
            session,
            subjects.endpoint(endpoint),
            lambda: client.send("POST", address, json=_chosen(revision)),
            outcome="traffic undone" if revision is None else "traffic restored",
            no_wait=no_wait,
        )


def roll_back(session: Session, endpoint: str, name: str, revision: int | None, *, no_wait: bool) -> bool:
    """Bring back the document of ``revision``; None: the newest one that differs. Returns and
    raises as ``operation_polling.run_operation``."""
    client = session.client
    address = f"{lookups.deployment_path(client, endpoint, name)}/rollback"
    with near_names.suggested(client, *lookups.deployment_places(client, endpoint, name)):
        return operation_polling.run_operation(
            session,
            subjects.deployment(endpoint, name),
            lambda: client.send("POST", address, json=_chosen(revision)),
            outcome="rolled back",
            no_wait=no_wait,
        )


def set_pause(session: Session, endpoint: str, name: str, change: str, *, no_wait: bool) -> bool:
    """``change``: ``pause`` or ``resume``. Returns and raises as
    ``operation_polling.run_operation``."""
    client = session.client
    address = f"{lookups.deployment_path(client, endpoint, name)}/{change}"
    with near_names.suggested(client, *lookups.deployment_places(client, endpoint, name)):
        return operation_polling.run_operation(
            session,
            subjects.deployment(endpoint, name),
            lambda: client.send("POST", address),
            outcome=f"{change}d",
            no_wait=no_wait,
        )


def traffic_table(session: Session, value: Any, endpoint: str) -> Table:
    rows = tuple(
        (
            *_when(session.client, row),
            _shares(row["from"], row["mirror_from"]),
            _shares(row["to"], row["mirror_to"]),
            row["reason"] or "",
        )
        for row in value
    )
    columns = (*_COLUMNS, Column("From (%)"), Column("To (%)"), Column("Reason"))
    return Table(columns, rows, f"the traffic of endpoint {endpoint} was never changed")


def deployment_table(session: Session, value: Any, target: str) -> Table:
    rows = tuple(
        (
            *_when(session.client, row),
            asset_name(row["model"]),
            str(row["instance_count"]),
            ", ".join(row["changed"]),
            row["reason"] or "",
        )
        for row in value
    )
    columns = (*_COLUMNS, Column("Model"), Column("Instances"), Column("Changed"), Column("Reason"))
    return Table(columns, rows, f"deployment {target} has not changed since its history is kept")


def scale_table(session: Session, value: Any, target: str) -> Table:
    rows = tuple(
        (
            durations.age(session.client.server_time - durations.epoch(row["time"])),
            str(row["from"]),
            str(row["to"]),
            row["by"],
            "applied" if row["mode"] == "apply" else "recommended",
            row["reason"].partition(": ")[2] or row["reason"],
        )
        for row in value
    )
    columns = tuple(map(Column, ("Age", "From", "To", "By", "Mode", "Reason")))
    return Table(columns, rows, f"nothing has scaled deployment {target}")


_COLUMNS = (Column("Revision"), Column("Age"), Column("By"), Column("Cause"))


def _when(client: Client, row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    age = durations.age(client.server_time - durations.epoch(row["time"]))
    return str(row["revision"]), age, row["author"], row["cause"]


def _rows(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{snake(name): value for name, value in row.items()} for row in body["value"]]


def _chosen(revision: int | None) -> dict[str, int]:
    return {} if revision is None else {"revision": revision}


def _shares(live: Mapping[str, int], mirrored: Mapping[str, int]) -> str:
    parts = [f"{name}={share}" for name, share in live.items()]
    parts += [f"{name}={share} (mirror)" for name, share in mirrored.items()]
    return " ".join(parts) or "-"
