"""Changes of the profiles of an autoscale setting, and of their rules.

Decides how a recurring profile is stored: as a pair, the second of which brings the default back
(``{"name": "default", "for": "weekend"}``), as Azure's tools do. A change of the default's rules or
limits changes all its copies. Must not know options or requests.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from amphitrite.schemas import windows_time_zones
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import nearest

DEFAULT = "default"
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_TIME = re.compile(r"(\d{1,2})(?::(\d{2}))?(?::\d{2})?")

Profile = dict[str, Any]
Capacity = dict[str, str]


def capacity(count: int, minimum: int | None, maximum: int | None) -> Capacity:
    """Limits that are not given are the number itself, as with ``az``."""
    least, most = (count if one is None else one for one in (minimum, maximum))
    return {"minimum": str(least), "maximum": str(most), "default": str(count)}


def find(profiles: Sequence[Profile], name: str) -> Profile:
    """Raises Error ResourceNotFound."""
    for profile in profiles:
        if profile["name"].lower() == name.lower():
            return profile
    names = [one["name"] for one in profiles if _pair(one) is None]
    near = nearest(name, names)
    hint = f"did you mean {near}?" if near else f"the profiles are {', '.join(names)}"
    raise Error("ResourceNotFound", f"there is no profile {name}", target=name, hint=hint)


def edit_rules(profiles: Sequence[Profile], name: str, change: Callable[[list[Any]], list[Any]]) -> None:
    """Replaces the rules of a profile, and of the copies of it that stand at the end of a
    schedule."""
    profile = find(profiles, name)
    profile["rules"] = change(list(profile["rules"]))
    for one in profiles:
        pair = _pair(one)
        if pair is not None and pair[0].lower() == name.lower():
            one["rules"] = copy.deepcopy(profile["rules"])


def edit_default_capacity(
    profiles: Sequence[Profile], count: int | None, minimum: int | None, maximum: int | None
) -> None:
    """Changes the limits of the default and of its copies. A fixed number stays one."""
    for one in profiles:
        if "fixedDate" in one or ("recurrence" in one and _pair(one) is None):
            continue
        old = one["capacity"]
        fixed = len(set(old.values())) == 1 and count is not None and minimum is None and maximum is None
        changed = {"minimum": count if fixed else minimum, "maximum": count if fixed else maximum, "default": count}
        one["capacity"] = {**old, **{name: str(value) for name, value in changed.items() if value is not None}}


def add_recurring(
    profiles: list[Profile],
    name: str,
    limits: Capacity,
    zone: str,
    words: Sequence[str],
    start: str | None,
    end: str | None,
    copy_rules: str | None,
) -> None:
    """``words``: ``week`` and the days. ``start`` and ``end``: times of each day, midnight to 23:59
    by default. Raises Error UsageError or ResourceNotFound."""
    if not words or words[0].lower() != "week" or len(words) < 2:
        raise _usage("--recurrence", " ".join(words), "week DAY [DAY ...], such as week sat sun")
    days = [_day(word) for word in words[1:]]
    begin, finish = _time("--start", start or "00:00"), _time("--end", end or "23:59")
    if begin >= finish:
        raise _usage("--end", str(end), "a time later than --start")
    default = find(profiles, DEFAULT)
    _refuse_known(profiles, name)
    rules = [] if copy_rules is None else copy.deepcopy(find(profiles, copy_rules)["rules"])
    back = json.dumps({"name": default["name"], "for": name})
    profiles.append({"name": name, "capacity": limits, "rules": rules, "recurrence": _recurrence(zone, days, *begin)})
    profiles.append(
        {
            "name": back,
            "capacity": dict(default["capacity"]),
            "rules": copy.deepcopy(default["rules"]),
            "recurrence": _recurrence(zone, days, *finish),
        }
    )


def add_fixed(
    profiles: list[Profile],
    name: str,
    limits: Capacity,
    zone: str,
    start: str | None,
    end: str | None,
    copy_rules: str | None,
) -> None:
    """``start``, ``end``: ``2026-12-24 [00:00:00]``, local times of the zone. Raises Error
    UsageError or ResourceNotFound."""
    if not start or not end:
        missing = "--start" if not start else "--end"
        raise _usage(missing, "", "a date such as 2026-12-24; or --recurrence week DAY ... for each week")
    _refuse_known(profiles, name)
    rules = [] if copy_rules is None else copy.deepcopy(find(profiles, copy_rules)["rules"])
    date = {"timeZone": zone, "start": start.strip().replace(" ", "T"), "end": end.strip().replace(" ", "T")}
    profiles.append({"name": name, "capacity": limits, "rules": rules, "fixedDate": date})


def remove(profiles: list[Profile], name: str) -> list[Profile]:
    """Without the profile and the one that ends it. Raises Error ResourceNotFound or UserError."""
    find(profiles, name)
    if name.lower() == DEFAULT:
        raise Error("UserError", "the default profile cannot be deleted", target=name, hint="delete the setting")
    pairs = {one["name"]: _pair(one) for one in profiles}
    return [
        one
        for one in profiles
        if one["name"].lower() != name.lower()
        and ((pair := pairs[one["name"]]) is None or pair[1].lower() != name.lower())
    ]


def time_zone(name: str) -> str:
    """A known name, as Windows spells it. Raises Error UsageError."""
    if windows_time_zones.find(name) is None:
        near = nearest(name, windows_time_zones.WINDOWS_TIME_ZONES)
        meant = f"; did you mean {near}?" if near else ""
        hint = "ml monitor autoscale profile list-timezones"
        raise Error("UsageError", f"--timezone: there is no time zone {name!r}{meant}", target=name, hint=hint)
    return windows_time_zones.spelled(name)


def _pair(profile: Profile) -> tuple[str, str] | None:
    """(the default's name, the schedule's) of the second of a pair."""
    try:
        value = json.loads(profile["name"])
    except ValueError:
        return None
    return (
        (str(value["name"]), str(value["for"])) if isinstance(value, dict) and {"name", "for"} <= set(value) else None
    )


def _recurrence(zone: str, days: list[str], hour: int, minute: int) -> dict[str, Any]:
    schedule = {"timeZone": zone, "days": days, "hours": [hour], "minutes": [minute]}
    return {"frequency": "Week", "schedule": schedule}


def _day(word: str) -> str:
    found = [day for day in _DAYS if len(word) >= 2 and day.lower().startswith(word.lower())]
    if len(found) != 1:
        raise _usage("--recurrence", word, f"days such as sat or Saturday: {', '.join(_DAYS)}")
    return found[0]


def _time(option: str, text: str) -> tuple[int, int]:
    match = _TIME.fullmatch(text.strip())
    hour, minute = (int(match[1]), int(match[2] or 0)) if match else (24, 0)
    if hour > 23 or minute > 59:
        raise _usage(option, text, "hh:mm")
    return hour, minute


def _refuse_known(profiles: Sequence[Profile], name: str) -> None:
    if any(one["name"].lower() == name.lower() for one in profiles):
        raise Error("Conflict", f"there is a profile {name} already", target=name, hint="delete it, or choose a name")


def _usage(option: str, text: str, form: str) -> Error:
    return Error("UsageError", f"{option}: cannot read {text[:80]!r}", target=option, hint=f"write {form}")
