"""``ml monitor autoscale rule``: create, list, delete and copy.

Decides the options and the output. Must not know the notation of a condition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import group, verb
from amphitrite.cli.verbs.autoscale.resource_options import Namespace, Parent, ResourceType, Setting, Source

if TYPE_CHECKING:
    from amphitrite.cli.terminal.tables import Table

app = group("rule", "Rules of a profile: when it scales out and in.")

Profile = Annotated[str, typer.Option("--profile-name", help="Name of the profile.")]
Indexes = Annotated[list[str], typer.Option("--index", help="Numbers from the list, or '*'.", show_default=False)]


def _table(session: Session, value: Any, **options: Any) -> Table:
    from amphitrite.cli.resources.autoscale import setting_tables

    return setting_tables.rules(session, value)


def register(parent: typer.Typer) -> None:
    """Add the group to that of settings."""
    parent.add_typer(app, name="rule")


@verb(app, "create", table=_table)
def create(
    session: Session,
    autoscale_name: Setting,
    condition: Annotated[
        list[str],
        typer.Option(
            "--condition", help='Such as "CpuUtilizationPercentage > 70 avg 5m [where D == V]".', show_default=False
        ),
    ],
    scale: Annotated[list[str], typer.Option("--scale", help="out 2, in 10% or to 5.", show_default=False)],
    cooldown: Annotated[int, typer.Option("--cooldown", help="Minutes since the last change.")] = 5,
    timegrain: Annotated[
        list[str] | None, typer.Option("--timegrain", help="How instances are combined. [default: avg 1m]")
    ] = None,
    profile_name: Profile = "default",
    resource: Source = None,
    resource_type: ResourceType = None,
    resource_parent: Parent = None,
    resource_namespace: Namespace = None,
) -> dict[str, Any]:
    """Add a rule to a profile."""
    from amphitrite.cli.resources.autoscale import profile_edits, rule_notation, setting_requests

    trigger = {
        **rule_notation.condition(" ".join(condition)),
        **rule_notation.time_grain(" ".join(timegrain or ["avg 1m"])),
    }
    action = {**rule_notation.scale(" ".join(scale)), "cooldown": f"PT{cooldown}M"}
    source = None
    if resource is not None:
        source = setting_requests.resource_id(
            session.client, resource, resource_namespace, resource_parent, resource_type
        )

    def edit(body: dict[str, Any]) -> None:
        properties = body["properties"]
        of = {"metricResourceUri": source or properties["targetResourceUri"]}
        rule = {"metricTrigger": {**trigger, **of}, "scaleAction": action}
        profile_edits.edit_rules(properties["profiles"], profile_name, lambda rules: [*rules, rule])

    written = setting_requests.change(session, autoscale_name, edit)
    made: dict[str, Any] = profile_edits.find(written["profiles"], profile_name)["rules"][-1]
    return made


@verb(app, "list", table=_table)
def list_(session: Session, autoscale_name: Setting, profile_name: Profile = "default") -> list[dict[str, Any]]:
    """List the rules of a profile with their numbers."""
    from amphitrite.cli.resources.autoscale import profile_edits, setting_requests

    setting = setting_requests.show(session.client, autoscale_name)
    rules = profile_edits.find(setting["profiles"], profile_name)["rules"]
    return [{**rule, "index": index} for index, rule in enumerate(rules)]


@verb(app, "delete")
def delete(session: Session, autoscale_name: Setting, index: Indexes, profile_name: Profile = "default") -> None:
    """Delete rules of a profile."""
    from amphitrite.cli.resources.autoscale import profile_edits, rule_indexes, setting_requests

    def without(rules: list[Any]) -> list[Any]:
        gone = rule_indexes.chosen(index, len(rules))
        return [rule for number, rule in enumerate(rules) if number not in gone]

    def edit(body: dict[str, Any]) -> None:
        profile_edits.edit_rules(body["properties"]["profiles"], profile_name, without)

    setting_requests.change(session, autoscale_name, edit)


@verb(app, "copy")
def copy(
    session: Session,
    autoscale_name: Setting,
    dest_schedule: Annotated[
        str, typer.Option("--dest-schedule", help="Name of the profile that gets the rules.", show_default=False)
    ],
    index: Indexes,
    source_schedule: Annotated[
        str, typer.Option("--source-schedule", help="Name of the profile with the rules.")
    ] = "default",
) -> None:
    """Copy rules of a profile to another one; with '*' they replace its own."""
    from amphitrite.cli.resources.autoscale import profile_edits, rule_indexes, setting_requests

    def edit(body: dict[str, Any]) -> None:
        profiles = body["properties"]["profiles"]
        rules = profile_edits.find(profiles, source_schedule)["rules"]
        picked = [rules[number] for number in sorted(rule_indexes.chosen(index, len(rules)))]
        everything = "*" in index
        profile_edits.edit_rules(profiles, dest_schedule, lambda own: picked if everything else [*own, *picked])

    setting_requests.change(session, autoscale_name, edit)
