"""An autoscale setting from its wire form.

Decides what is valid and what is refused, and by which names fields are called in messages. All
violations are reported at once. Must not know who else has a say in a deployment. Outside contract:
``Microsoft.Insights/autoscalesettings``, api-version 2022-10-01.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any
from zoneinfo import ZoneInfo

from amphitrite.controlplane.core.autoscale_settings import profiles
from amphitrite.controlplane.core.autoscale_settings.field_reader import FieldReader, Path
from amphitrite.controlplane.core.autoscale_settings.rule_reading import INSTANCES_MAX, read_rule, target_of
from amphitrite.controlplane.core.autoscale_settings.setting import (
    AutoscaleSetting,
    Capacity,
    FixedDate,
    Profile,
    Recurrence,
    Target,
)
from amphitrite.schemas import windows_time_zones
from amphitrite.schemas.errors import Error, Violation

PROFILES_MAX, RULES_MAX = 20, 10
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_PROPERTIES = (
    *("enabled", "name", "targetResourceUri", "targetResourceLocation", "profiles", "notifications"),
    "predictiveAutoscalePolicy",
)
_NO_MAIL = "this server sends no messages"
_SEE = "`ml monitor autoscale show` says what a setting comes to, and why"


def read(name: str, properties: Mapping[str, Any], workspace: str) -> AutoscaleSetting:
    """The setting. ``workspace``: the ARM id of this server's.

    Raises Error InvalidDocument, with the path of each field that is wrong.
    """
    violations: list[Violation] = []
    fields = FieldReader(properties, ("properties",), violations, _PROPERTIES)
    given = fields.text("name", needed=False)
    if given and given.lower() != name.lower():
        fields.refuse(("name",), f"is {given[:80]!r}, but the path says {name!r}")
    uri = fields.text("targetResourceUri")
    target = target_of(uri, workspace)
    if uri and (target is None or target.deployment is None):
        fields.refuse(
            ("targetResourceUri",),
            f"is {uri[:200]!r}; only a deployment here can be scaled",
            "show its id with `ml online-deployment show -e ENDPOINT -n NAME --query id`",
        )
    fields.text("targetResourceLocation", needed=False)
    if fields.required("profiles") == []:
        fields.refuse(("profiles",), "needs at least one profile")
    read_profiles = tuple(
        _profile(one, path, violations, workspace) for path, one in fields.items("profiles", PROFILES_MAX)
    )
    _check_names(fields, read_profiles)
    _check_notifications(fields)
    _check_predictive(fields)
    enabled = fields.flag("enabled", True)
    if violations:
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        first = violations[0]
        raise Error("InvalidDocument", f"{first}{more}", target=name, hint=first.hint, violations=violations)
    return AutoscaleSetting(name, target or Target(""), read_profiles, enabled)


def warnings(setting: AutoscaleSetting) -> list[str]:
    """What is valid and most probably a mistake: a rule of Azure's own examples, which grows on low
    utilization, and rules in one direction alone."""
    found = []
    for profile in setting.profiles:
        if profiles.paired_with(profile.name) is not None:
            continue
        directions = {rule.action.direction for rule in profile.rules}
        for rule in profile.rules:
            low, high = ("LessThan", "LessThanOrEqual"), ("GreaterThan", "GreaterThanOrEqual")
            what = f"profile {profile.name}: {rule.trigger.metric} {rule.trigger.operator} {rule.trigger.threshold:g}"
            if rule.trigger.operator in low and rule.action.direction == "Increase":
                found.append(f"{what} has the direction Increase; a rule to scale in has Decrease")
            elif rule.trigger.operator in high and rule.action.direction == "Decrease":
                found.append(f"{what} has the direction Decrease; a rule to scale out has Increase")
        if directions == {"Increase"}:
            found.append(f"profile {profile.name} has rules to scale out but none to scale in")
        elif directions == {"Decrease"}:
            found.append(f"profile {profile.name} has rules to scale in but none to scale out")
    return found


def _profile(value: Any, path: Path, violations: list[Violation], workspace: str) -> Profile:
    fields = FieldReader(value, path, violations, ("name", "capacity", "rules", "fixedDate", "recurrence"))
    name = fields.text("name")
    fields.required("capacity")
    fields.required("rules")
    if fields.get("fixedDate") is not None and fields.get("recurrence") is not None:
        fields.refuse((), "has both fixedDate and recurrence; a profile has one of them or none")
    return Profile(
        name,
        _capacity(fields.within("capacity", ("minimum", "maximum", "default"))),
        tuple(read_rule(one, where, violations, workspace) for where, one in fields.items("rules", RULES_MAX)),
        _fixed_date(fields.within("fixedDate", ("timeZone", "start", "end"))),
        _recurrence(fields.within("recurrence", ("frequency", "schedule"))),
    )


def _capacity(fields: FieldReader | None) -> Capacity:
    if fields is None:
        return Capacity(1, 1, 1)
    if fields.get("minimum") in ("0", 0):
        hint = "scale_settings of type target_utilization can let a deployment sleep and wake it"
        fields.refuse(("minimum",), "is 0; a rule could not wake the deployment: at least 1", hint)
    least = fields.count("minimum", 0, INSTANCES_MAX)
    most, default = (fields.count(name, 1, INSTANCES_MAX) for name in ("maximum", "default"))
    if least > most:
        fields.refuse(("minimum",), f"is {least}, more than the maximum of {most}")
    elif not least <= default <= most:
        fields.refuse(("default",), f"is {default}; allowed: {least} to {most} (minimum to maximum)")
    return Capacity(least, most, default)


def _zone(text: object) -> ZoneInfo:
    found = windows_time_zones.find(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"there is no time zone {str(text)[:80]!r}; `ml monitor autoscale profile list-timezones`")
    try:
        return ZoneInfo(found)
    except OSError as exc:
        raise ValueError(f"the server has no data about time zones ({found}): install tzdata") from exc


def _moment(text: object) -> datetime:
    try:
        # Python before 3.11 parses neither Z nor other than 3 or 6 digits.
        whole, dot, rest = str(text).replace("Z", "+00:00").partition(".")
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        return datetime.fromisoformat(whole + (f".{digits[:6]:0<6}{rest[len(digits) :]}" if dot else ""))
    except ValueError as exc:
        raise ValueError(f"is {str(text)[:40]!r}; write a time such as 2026-12-24T00:00:00") from exc


def _fixed_date(fields: FieldReader | None) -> FixedDate | None:
    if fields is None:
        return None
    zone = fields.read("timeZone", _zone, needed=False) or timezone.utc
    # Azure's tools send the local time of the zone with the offset of UTC.
    start, end = (fields.read(name, lambda text: _local(_moment(text), zone)) for name in ("start", "end"))
    if start is None or end is None:
        return None
    if start >= end:
        fields.refuse(("end",), "must be later than start")
    return FixedDate(start, end)


def _local(moment: datetime, zone: ZoneInfo | timezone) -> datetime:
    offset = moment.utcoffset()
    return moment if offset else moment.replace(tzinfo=zone)


def _recurrence(fields: FieldReader | None) -> Recurrence | None:
    if fields is None:
        return None
    frequency = fields.required("frequency")
    if frequency is not None and str(frequency).lower() != "week":
        fields.refuse(("frequency",), f"is {str(frequency)[:40]!r}; allowed: Week (name all days for each day)")
    fields.required("schedule")
    schedule = fields.within("schedule", ("timeZone", "days", "hours", "minutes"))
    if schedule is None:
        return None
    zone = schedule.read("timeZone", _zone)
    schedule.required("days")
    known = {day.lower(): at for at, day in enumerate(DAYS)}
    days = [known.get(str(day).lower()) for _, day in schedule.items("days")]
    if schedule.get("days") is not None and (None in days or not days):
        schedule.refuse(("days",), f"must be a list of {', '.join(DAYS)}")
    hours, minutes = schedule.numbers("hours", 0, 23), schedule.numbers("minutes", 0, 59)
    if zone is None:
        return None
    return Recurrence(zone.key, tuple(day for day in days if day is not None), hours, minutes)


def _check_names(fields: FieldReader, found: tuple[Profile, ...]) -> None:
    seen: set[str] = set()
    for at, profile in enumerate(found):
        if profile.name in seen:
            fields.refuse(("profiles", at, "name"), f"is {profile.name!r}, as that of another profile")
        seen.add(profile.name)
    plain = [one.name for one in found if one.fixed_date is None and one.recurrence is None]
    if len(plain) > 1:
        fields.refuse(("profiles",), f"{' and '.join(plain)} have no schedule; only one profile may have none")


def _check_notifications(fields: FieldReader) -> None:
    """Azure's tools always send a notification; one that tells nobody is nothing to refuse."""
    for path, value in fields.items("notifications"):
        one = FieldReader(value, path, fields.violations, ("operation", "email", "webhooks"))
        one.one_of("operation", ("Scale",))
        flags = ("sendToSubscriptionAdministrator", "sendToSubscriptionCoAdministrators")
        email = one.within("email", (*flags, "customEmails"))
        if email is not None:
            for name in flags:
                if email.flag(name, False):
                    email.refuse((name,), _NO_MAIL, _SEE)
            if email.items("customEmails"):
                email.refuse(("customEmails",), _NO_MAIL, _SEE)
        if one.items("webhooks"):
            one.refuse(("webhooks",), _NO_MAIL, _SEE)


def _check_predictive(fields: FieldReader) -> None:
    policy = fields.within("predictiveAutoscalePolicy", ("scaleMode", "scaleLookAheadTime"))
    if policy is None:
        return
    if policy.one_of("scaleMode", ("Disabled", "ForecastOnly", "Enabled")) != "Disabled":
        hint = "a recurring profile scales before the hour that you know"
        policy.refuse(("scaleMode",), "this server forecasts nothing; allowed: Disabled", hint)
    if policy.get("scaleLookAheadTime") is not None:
        policy.duration("scaleLookAheadTime", 60, 3600)
