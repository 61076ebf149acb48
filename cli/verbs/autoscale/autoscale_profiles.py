"""``ml monitor autoscale profile``: create, show, list, delete and list-timezones.

Decides the options and the output. Must not know how a schedule is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import group, verb
from amphitrite.cli.verbs.autoscale.resource_options import Setting

if TYPE_CHECKING:
    from amphitrite.cli.terminal.tables import Table

app = group("profile", "Profiles: other limits and rules on some days or dates.")

Name = Annotated[str, typer.Option("--name", "-n", help="Name of the profile.", show_default=False)]


def _table(session: Session, value: Any, **options: Any) -> Table:
    from amphitrite.cli.resources.autoscale import setting_tables

    return setting_tables.profiles(session, value)


def register(parent: typer.Typer) -> None:
    """Add the group to that of settings."""
    parent.add_typer(app, name="profile")


@verb(app, "create", table=_table)
def create(
    session: Session,
    autoscale_name: Setting,
    name: Name,
    count: Annotated[int, typer.Option("--count", help="Instances where a metric has no data.", show_default=False)],
    timezone: Annotated[str, typer.Option("--timezone", help='Such as "Pacific Standard Time".', show_default=False)],
    min_count: Annotated[int | None, typer.Option("--min-count", help="The least. [default: count]")] = None,
    max_count: Annotated[int | None, typer.Option("--max-count", help="The most. [default: count]")] = None,
    start: Annotated[
        str | None, typer.Option("--start", help="2026-12-24 [hh:mm:ss]; with --recurrence hh:mm.")
    ] = None,
    end: Annotated[str | None, typer.Option("--end", help="As --start.")] = None,
    recurrence: Annotated[
        list[str] | None, typer.Option("--recurrence", "-r", help="week sat sun. Without it: once.")
    ] = None,
    copy_rules: Annotated[
        str | None, typer.Option("--copy-rules", help="Name of a profile whose rules it gets.")
    ] = None,
) -> dict[str, Any]:
    """Add a profile for some days of each week, or for a time between two dates."""
    from amphitrite.cli.resources.autoscale import profile_edits, setting_requests

    zone = profile_edits.time_zone(timezone)
    limits = profile_edits.capacity(count, min_count, max_count)

    def edit(body: dict[str, Any]) -> None:
        profiles = body["properties"]["profiles"]
        if recurrence is not None:
            profile_edits.add_recurring(profiles, name, limits, zone, recurrence, start, end, copy_rules)
        else:
            profile_edits.add_fixed(profiles, name, limits, zone, start, end, copy_rules)

    return profile_edits.find(setting_requests.change(session, autoscale_name, edit)["profiles"], name)


@verb(app, "show", table=_table)
def show(session: Session, autoscale_name: Setting, name: Name) -> dict[str, Any]:
    """Show a profile."""
    from amphitrite.cli.resources.autoscale import profile_edits, setting_requests

    return profile_edits.find(setting_requests.show(session.client, autoscale_name)["profiles"], name)


@verb(app, "list", table=_table)
def list_(session: Session, autoscale_name: Setting) -> list[dict[str, Any]]:
    """List the profiles, also those that end a schedule."""
    from amphitrite.cli.resources.autoscale import setting_requests

    found: list[dict[str, Any]] = setting_requests.show(session.client, autoscale_name)["profiles"]
    return found


@verb(app, "delete")
def delete(session: Session, autoscale_name: Setting, name: Name) -> None:
    """Delete a profile and what ends it."""
    from amphitrite.cli.resources.autoscale import profile_edits, setting_requests

    def edit(body: dict[str, Any]) -> None:
        properties = body["properties"]
        properties["profiles"] = profile_edits.remove(properties["profiles"], name)

    setting_requests.change(session, autoscale_name, edit)


@verb(app, "list-timezones", columns=("name", "offset"))
def list_timezones(
    session: Session,
    offset: Annotated[
        str | None, typer.Option("--offset", help="Only those with this offset, as +1 or -08:00.")
    ] = None,
    search_query: Annotated[str | None, typer.Option("--search-query", "-q", help="Only those with this text.")] = None,
) -> list[dict[str, str]]:
    """List the names of time zones, with their offset outside of summer time."""
    from amphitrite.cli.resources.autoscale import time_zone_rows

    return time_zone_rows.rows(search_query, offset)
