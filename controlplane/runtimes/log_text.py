"""The logs of a deployment as one text.

Decides the order, the headings and which attempt is the previous one. Must not know files or pods.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.schemas.errors import Error

_MARK = "==> "
#: The start of an instance's heading.
_PART = re.compile(r"(?m)^(?===> [^\n]* <==$)")


def render(logs: Iterable[tuple[Instance, Sequence[str]]]) -> str:
    """Each instance's lines under a heading, the newest instance last; empty without instances."""
    ordered = sorted(logs, key=lambda entry: (entry[0].started_at, entry[0].id))
    return "".join(f"==> {_heading(i)} <==\n" + "".join(f"{line}\n" for line in lines) for i, lines in ordered)


def previous_attempts(instances: Iterable[Instance], unit: Callable[[Instance], object]) -> list[Instance]:
    """Of each unit (a slot, a pod) the attempt before its newest; none of a unit that has only one.

    ``unit``: what several attempts have in common.
    """
    units: dict[object, list[Instance]] = {}
    for instance in instances:
        units.setdefault(unit(instance), []).append(instance)
    ordered = (sorted(many, key=lambda one: (one.attempt, one.started_at)) for many in units.values())
    return [many[-2] for many in ordered if len(many) > 1]


def select_instance(text: str, instance: str) -> str:
    """The parts of :func:`render`'s text for instances whose name begins with ``instance``.

    Raises Error("ResourceNotFound") with the existing names as the hint.
    """
    parts = [part for part in _PART.split(text) if part]
    names = [part[len(_MARK) :].split(" ", 1)[0].rstrip(",") for part in parts]
    chosen = [part for part, name in zip(parts, names, strict=True) if name == instance or name.startswith(instance)]
    if not chosen:
        hint = f"instances with a log: {', '.join(names) or 'none'}"
        raise Error("ResourceNotFound", f"no instance {instance} has a log", target=instance, hint=hint)
    return "".join(chosen)


def _heading(instance: Instance) -> str:
    parts = [instance.id, instance.phase]
    if instance.exit_code is not None:
        parts.append(f"exit code {instance.exit_code}")
    return ", ".join(parts)
