"""Tables of autoscale settings, rules and profiles.

Decides their columns. Must not know requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amphitrite.cli.terminal.tables import Column, Table

if TYPE_CHECKING:
    from amphitrite.cli.session.session import Session

_SIGNS = {
    "Equals": "==",
    "NotEquals": "!=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}


def settings(session: Session, value: Any, **options: Any) -> Table:
    rows = tuple(
        (
            one["name"],
            "yes" if one["enabled"] else "no",
            _target(one["targetResourceUri"]),
            str(one["status"].get("instances", "")),
            one["status"]["reason"],
        )
        for one in (value if isinstance(value, list) else [value])
    )
    columns = (Column("Name"), Column("Enabled"), Column("Scales"), Column("Instances"), Column("Now"))
    return Table(columns, rows, "there are no autoscale settings")


def rules(session: Session, value: Any, **options: Any) -> Table:
    found = value if isinstance(value, list) else [value]
    rows = tuple((str(one.get("index", "")), *_rule(one)) for one in found)
    columns = (Column("Index"), Column("Condition"), Column("Of"), Column("Scale"), Column("Cooldown"))
    return Table(columns, rows, "the profile has no rules")


def profiles(session: Session, value: Any, **options: Any) -> Table:
    rows = tuple(
        (
            one["name"],
            *(one["capacity"][name] for name in ("minimum", "maximum", "default")),
            str(len(one["rules"])),
            _when(one),
        )
        for one in (value if isinstance(value, list) else [value])
    )
    columns = (*(Column(name) for name in ("Name", "Minimum", "Maximum", "Default", "Rules", "Begins")),)
    return Table(columns, rows)


def _rule(rule: dict[str, Any]) -> tuple[str, str, str, str]:
    trigger, action = rule["metricTrigger"], rule["scaleAction"]
    sign = _SIGNS.get(trigger["operator"], trigger["operator"])
    over = f"{trigger['timeAggregation']} of {trigger['timeWindow']}"
    condition = f"{trigger['metricName']} {sign} {trigger['threshold']:g} ({over})"
    word = {"Increase": "out", "Decrease": "in"}.get(action["direction"], "to")
    percent = "%" if action["type"] == "PercentChangeCount" else ""
    return condition, _target(trigger["metricResourceUri"]), f"{word} {action['value']}{percent}", action["cooldown"]


def _when(profile: dict[str, Any]) -> str:
    if date := profile.get("fixedDate"):
        return f"{date['start']} to {date['end']} {date.get('timeZone') or 'UTC'}"
    if recurrence := profile.get("recurrence"):
        schedule = recurrence["schedule"]
        at = f"{schedule['hours'][0]:02d}:{schedule['minutes'][0]:02d}"
        return f"{', '.join(schedule['days'])} {at} {schedule['timeZone']}"
    return ""


def _target(uri: str) -> str:
    """``pictures/blue`` of an ARM id."""
    words = uri.rstrip("/").split("/")
    return "/".join(words[index] for index in (10, 12) if index < len(words)) or uri
