"""``ml monitor autoscale``: create, show, list, update and delete of settings.

Decides the options and the output. Must not know how a setting is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import group, verb
from amphitrite.cli.terminal import options
from amphitrite.cli.verbs.autoscale import autoscale_profiles, autoscale_rules
from amphitrite.cli.verbs.autoscale.resource_options import Namespace, Parent, Resource, ResourceType

if TYPE_CHECKING:
    from amphitrite.cli.terminal.tables import Table

app = group("monitor", "Autoscale settings, with the commands of az monitor.")
autoscale = group("autoscale", "Rules and schedules by which a deployment is scaled.")
app.add_typer(autoscale, name="autoscale")
autoscale_rules.register(autoscale)
autoscale_profiles.register(autoscale)

Name = Annotated[str, typer.Option("--name", "-n", help="Name of the setting.", show_default=False)]
Count = Annotated[int | None, typer.Option("--count", help="Instances where a metric has no data.")]
Least = Annotated[int | None, typer.Option("--min-count", help="The least instances. [default: count]")]
Most = Annotated[int | None, typer.Option("--max-count", help="The most instances. [default: count]")]
Tags = Annotated[list[str] | None, typer.Option("--tags", help="Tags: NAME=VALUE ...")]


def _table(session: Session, value: Any, **options: Any) -> Table:
    from amphitrite.cli.resources.autoscale import setting_tables

    return setting_tables.settings(session, value)


@verb(autoscale, "create", table=_table)
def create(
    session: Session,
    resource: Resource,
    count: Annotated[
        int,
        typer.Option("--count", help="Number of instances; with limits that where a metric has no data."),
    ],
    name: Annotated[
        str | None, typer.Option("--name", "-n", help="Name of the setting. [default: that of the resource]")
    ] = None,
    min_count: Least = None,
    max_count: Most = None,
    disabled: Annotated[str | None, typer.Option("--disabled", help="true: it has no effect until enabled.")] = None,
    tags: Tags = None,
    location: Annotated[str | None, typer.Option("--location", "-l", help="A text that is kept with it.")] = None,
    resource_type: ResourceType = None,
    resource_parent: Parent = None,
    resource_namespace: Namespace = None,
    action: Annotated[
        list[str] | None, typer.Option("--action", "-a", help="Refused: this server sends no messages.")
    ] = None,
    email_administrator: Annotated[bool, typer.Option("--email-administrator", help="Refused, as --action.")] = False,
    email_coadministrators: Annotated[
        bool, typer.Option("--email-coadministrators", help="Refused, as --action.")
    ] = False,
    scale_mode: Annotated[
        str | None, typer.Option("--scale-mode", help="Only Disabled: this server forecasts nothing.")
    ] = None,
    scale_look_ahead_time: Annotated[
        str | None, typer.Option("--scale-look-ahead-time", help="Duration, with --scale-mode.")
    ] = None,
) -> dict[str, Any]:
    """Create a setting with a default profile, which has limits and no rules yet."""
    from amphitrite.cli.documents import document_input
    from amphitrite.cli.resources.autoscale import option_values, profile_edits, setting_requests

    option_values.refuse_messages(action, email_administrator, email_coadministrators)
    target = setting_requests.resource_id(session.client, resource, resource_namespace, resource_parent, resource_type)
    limits = profile_edits.capacity(count, min_count, max_count)
    properties = {
        "enabled": not option_values.flag("--disabled", disabled or "false"),
        "targetResourceUri": target,
        "profiles": [{"name": profile_edits.DEFAULT, "capacity": limits, "rules": []}],
        **option_values.predictive(scale_mode, scale_look_ahead_time),
    }
    given = document_input.parse_pairs("--tags", tags) or {}
    body = {**({"location": location} if location else {}), "tags": given, "properties": properties}
    made = setting_requests.put(session, name or target.rstrip("/").rpartition("/")[2], body)
    if limits["minimum"] != limits["maximum"]:
        session.note("note: add rules with `ml monitor autoscale rule create`")
    return made


@verb(autoscale, "show", table=_table)
def show(session: Session, name: Name) -> dict[str, Any]:
    """Show a setting; `status` says what it comes to now, and why."""
    from amphitrite.cli.resources.autoscale import setting_requests

    return setting_requests.show(session.client, name)


@verb(autoscale, "list", table=_table)
def list_(session: Session) -> list[dict[str, Any]]:
    """List all settings."""
    from amphitrite.cli.resources.autoscale import setting_requests

    return setting_requests.list_all(session.client)


@verb(autoscale, "update", table=_table)
def update(
    session: Session,
    name: Name,
    count: Count = None,
    min_count: Least = None,
    max_count: Most = None,
    enabled: Annotated[str | None, typer.Option("--enabled", help="true or false: whether it has an effect.")] = None,
    tags: Tags = None,
) -> dict[str, Any]:
    """Change the limits of the default profile, or switch the setting on or off."""
    from amphitrite.cli.documents import document_input
    from amphitrite.cli.resources.autoscale import option_values, profile_edits, setting_requests

    given = document_input.parse_pairs("--tags", tags)
    wanted = None if enabled is None else option_values.flag("--enabled", enabled)

    def edit(body: dict[str, Any]) -> None:
        profile_edits.edit_default_capacity(body["properties"]["profiles"], count, min_count, max_count)
        if wanted is not None:
            body["properties"]["enabled"] = wanted
        if given is not None:
            body["tags"] = given

    return setting_requests.change(session, name, edit)


@verb(autoscale, "delete")
def delete(session: Session, name: Name, ignore_not_found: options.IgnoreNotFound = False) -> None:
    """Delete a setting. The number of instances stays as it is."""
    from amphitrite.cli.resources.autoscale import setting_requests

    if not setting_requests.delete(session.client, name) and not ignore_not_found:
        setting_requests.show(session.client, name)  # Says what is not there, and the nearest name.
