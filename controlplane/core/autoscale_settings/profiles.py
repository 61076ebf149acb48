"""Which profile of a setting is in force.

Decides the order: a fixed date, then a recurrence, then the default. A recurring profile begins at
its times and ends where the next recurring one begins. Azure's tools therefore store each schedule
as a pair: the second one is named ``{"name": "default", "for": "weekend"}`` and brings the default
back. Must not know rules.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from amphitrite.controlplane.core.autoscale_settings.setting import AutoscaleSetting, Profile, Recurrence

_DAYS_OF_A_WEEK = 7


def in_force(setting: AutoscaleSetting, now: float) -> Profile:
    """``now``: seconds since the epoch. Of two fixed dates that overlap the first in the setting
    counts, of two recurrences that begin at once the last."""
    moment = datetime.fromtimestamp(now, timezone.utc)
    for profile in setting.profiles:
        if profile.fixed_date is not None and profile.fixed_date.start <= moment < profile.fixed_date.end:
            return profile
    recurring = [
        (begun, at, profile)
        for at, profile in enumerate(setting.profiles)
        if profile.recurrence is not None
        for begun in [_last_begin(profile.recurrence, moment)]
    ]
    if recurring:
        return max(recurring, key=lambda one: one[:2])[2]
    default = next((one for one in setting.profiles if one.fixed_date is None and one.recurrence is None), None)
    # Outside its dates, a setting with fixed dates alone goes on with the first: there is no other.
    return setting.profiles[0] if default is None else default


def paired_with(name: str) -> tuple[str, str] | None:
    """(the default's name, the schedule's name) of the second profile of a pair; None for any other
    name."""
    try:
        value = json.loads(name)
    except ValueError:
        return None
    if isinstance(value, dict) and isinstance(value.get("name"), str) and isinstance(value.get("for"), str):
        return value["name"], value["for"]
    return None


def shown_name(profile: Profile) -> str:
    """The name of a profile for people: that of a pair's second is the default's."""
    pair = paired_with(profile.name)
    return profile.name if pair is None else pair[0]


def _last_begin(recurrence: Recurrence, now: datetime) -> datetime:
    """The last of the times at or before ``now``."""
    zone = ZoneInfo(recurrence.zone)
    today = now.astimezone(zone).date()
    begins = [
        datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone).astimezone(timezone.utc)
        for back in range(_DAYS_OF_A_WEEK + 1)
        for day in [today - timedelta(days=back)]
        if day.weekday() in recurrence.days
        for hour in recurrence.hours
        for minute in recurrence.minutes
    ]
    return max(begin for begin in begins if begin <= now)
