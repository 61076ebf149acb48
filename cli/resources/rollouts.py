"""Rollouts: requests, text and tables.

Decides what people see of a rollout, and how a watch of it ends. Must not know how it is judged.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from amphitrite.cli.resources import lookups, subjects
from amphitrite.cli.session import near_names
from amphitrite.cli.session.operation_polling import UNREACHABLE_TIMEOUT_S
from amphitrite.cli.terminal import durations
from amphitrite.cli.terminal.tables import Column, Table, layout
from amphitrite.schemas.casing import camel, snake
from amphitrite.schemas.errors import Error

if TYPE_CHECKING:
    from amphitrite.cli.session.rest_client import Client
    from amphitrite.cli.session.session import Session

Row = dict[str, Any]

ENDS = ("Succeeded", "RolledBack", "Aborted")
_BAR = 30
#: Seconds between two looks of a watch. Counts change each 5 s, states within a second.
_LOOK_S = 1.0


def start(client: Client, endpoint: str, to: str, settings: Mapping[str, Any]) -> Row:
    body = {"to": to, **{camel(name): value for name, value in settings.items() if value is not None}}
    with near_names.suggested(client, *lookups.endpoint_places(client, endpoint)):
        return _row(client.send("POST", _path(client, endpoint), json=body).json())


def list_all(client: Client, endpoint: str) -> list[Row]:
    """Newest first."""
    with near_names.suggested(client, *lookups.endpoint_places(client, endpoint)):
        return [_row(one) for one in client.get(_path(client, endpoint))["value"]]


def one(client: Client, endpoint: str, number: int | None) -> Row:
    """Rollout ``number``; None: the newest. Raises Error ResourceNotFound."""
    if number is not None:
        return _row(client.get(f"{_path(client, endpoint)}/{number}"))
    found = list_all(client, endpoint)
    if not found:
        hint = f"start one: ml online-endpoint rollout start -n {endpoint} --to DEPLOYMENT"
        raise Error("ResourceNotFound", f"endpoint '{endpoint}' has had no rollout", target=endpoint, hint=hint)
    return found[0]


def ask(client: Client, endpoint: str, request: str, body: Mapping[str, Any] | None = None) -> Row:
    """``request``: pause, resume, promote or abort, of the newest rollout."""
    number = one(client, endpoint, None)["number"]
    return _row(client.send("POST", f"{_path(client, endpoint)}/{number}/{request}", json=dict(body or {})).json())


def watch(session: Session, endpoint: str, number: int | None) -> Row:
    """Shows the rollout on stderr until it has ended; then returns it.

    Raises Error ResourceNotReady if it did not succeed, with its reason.
    """
    client = session.client
    shown = one(client, endpoint, number)
    lost_at: float | None = None
    with session.progress(subjects.endpoint(endpoint)) as progress:
        while shown["state"] not in ENDS:
            progress.tell(f"{shown['state']}: {shown['phase']}")
            progress.phase(shown["reason"])
            time.sleep(_LOOK_S)
            try:
                shown, lost_at = one(client, endpoint, shown["number"]), None
            except Error as error:
                lost_at = lost_at or time.monotonic()
                if error.code != "ServerUnreachable" or time.monotonic() - lost_at > UNREACHABLE_TIMEOUT_S:
                    raise
                progress.phase("waiting for the control plane")
        progress.done(f"{shown['state']}: {shown['reason']}")
    if shown["state"] != "Succeeded":
        hint = f"see its evidence: ml online-endpoint rollout status -n {endpoint} --number {shown['number']}"
        message = f"rollout {shown['number']} to {shown['to']} is {shown['state']}: {shown['reason']}"
        raise Error("ResourceNotReady", message, target=endpoint, hint=hint)
    return shown


def note_active(session: Session, endpoint: str) -> bool:
    """Says that a rollout moves the traffic, if one does. Returns whether it does."""
    newest = next(iter(list_all(session.client, endpoint)), None)
    if newest is None or newest["state"] in ENDS:
        return False
    session.note(
        f"endpoint/{endpoint}: rollout {newest['number']} moves the traffic to {newest['to']}; "
        f"watch it: ml online-endpoint rollout status -n {endpoint} -w"
    )
    return True


def rounded_limits(settings: Mapping[str, Any], shown: Row) -> list[str]:
    """Notes about latencies that are judged at a lower bound than the user gave."""
    return [
        f"note: latencies are counted between fixed bounds, so --{name.replace('_', '-')} {given} is judged at {judged}"
        for name, given in settings.items()
        if name.startswith("max_p") and given is not None
        if (judged := shown["settings"][name]) != given
    ]


def text(client: Client, shown: Row) -> str:
    """A rollout for people: state, share, reason, evidence."""
    full = round(_BAR * shown["percent"] / 100)
    since = durations.age(client.server_time - durations.epoch(shown["start_time"]))
    lines = [
        f"rollout {shown['number']} of endpoint {shown['endpoint']}: {shown['state']}",
        f"{shown['to']} [{('=' * full).ljust(_BAR)}] {shown['percent']} %",
        shown["reason"],
        f"started {since} ago by {shown['author']}" + (f": {shown['start_reason']}" if shown["start_reason"] else ""),
    ]
    evidence = _evidence(shown)
    if shown["largest_differences"]:
        evidence += f"\n{_differences(shown['largest_differences'])}"
    return "\n".join(lines) + "\n" + (f"\n{evidence}" if evidence else "")


def table(session: Session, value: Any, endpoint: str) -> Table:
    columns = (
        *(Column("Number"), Column("To"), Column("State", is_state=True), Column("Share (%)"), Column("Age")),
        *(Column("By"), Column("Reason")),
    )
    now = session.client.server_time
    rows = tuple(
        (
            *(str(one["number"]), one["to"], one["state"], str(one["percent"])),
            *(durations.age(now - durations.epoch(one["start_time"])), one["author"], one["reason"]),
        )
        for one in (value if isinstance(value, list) else [value])
    )
    return Table(columns, rows, f"endpoint {endpoint} has had no rollout")


def _evidence(shown: Row) -> str:
    """``for`` and ``against``: how much of the evidence that is needed there is."""
    other = shown["settings"].get("compare_with")
    headings = ["Objective", "Limit", shown["to"], *([other] if other else []), "Kept (%)", "Against (%)", "Needed"]
    rows = [
        [
            *(one["name"], one["limit"], _share(one["bad"], one["total"])),
            *([_share(one.get("other_bad", 0), one.get("other_total", 0))] if other else []),
            *(str(one["kept"]), str(one["against"])),
            "-" if one["needed"] is None else f"{one['needed']:,}",
        ]
        for one in shown["objectives"]
    ]
    return layout([Column(heading) for heading in headings], rows)


def _differences(found: Mapping[str, float]) -> str:
    """The largest difference of each tensor. From 1e18 on it has no bound: NaN beside a number."""
    rows = [[name, f"{value:.3g}" if value < 1e18 else "unbounded"] for name, value in found.items()]
    return layout([Column("Tensor"), Column("Largest difference")], rows)


def _share(bad: int, total: int) -> str:
    return f"{100 * bad / total:.3g} % ({bad:,} of {total:,})" if total else "-"


def _path(client: Client, endpoint: str) -> str:
    return f"{lookups.endpoint_path(client, endpoint)}/rollouts"


def _row(body: Mapping[str, Any]) -> Row:
    """Snake case, but for the names of deployments."""
    row = {snake(name): value for name, value in body.items()}
    row["settings"] = {snake(name): value for name, value in row["settings"].items()}
    row["objectives"] = [{snake(name): value for name, value in one.items()} for one in row["objectives"]]
    return row
