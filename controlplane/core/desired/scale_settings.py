"""``scale_settings`` of type ``target_utilization``, as a deployment's document has them.

Decides the defaults, Azure ML's for what Azure has, and that a property ``amphitrite.scale_FIELD``
stands for a field: Azure's SDK and CLI drop fields that they do not know, and refuse them all in
managed deployments. Must not know samples, or what is recommended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

TARGET_UTILIZATION = "target_utilization"
#: Of the properties that stand for fields.
PREFIX = "amphitrite.scale_"
#: The fields, with their values.
FIELDS: Mapping[str, tuple[str, ...] | range] = {
    "type": ("default", TARGET_UTILIZATION),
    "min_instances": range(10_001),
    "max_instances": range(1, 10_001),
    "target_utilization_percentage": range(1, 101),
    "polling_interval": range(1, 301),
    "idle_timeout": range(1, 86_401),
    "mode": ("apply", "recommend"),
}

#: recommend: the number is only shown, and ``instance_count`` stays in force.
Mode = Literal["apply", "recommend"]


@dataclass(frozen=True, slots=True)
class ScaleSettings:
    """Times in seconds. ``idle_timeout``: without a request, after which a deployment with
    ``min_instances`` 0 gets no instance."""

    min_instances: int = 1
    max_instances: int = 1
    target_utilization_percentage: int = 70
    polling_interval: int = 1
    idle_timeout: int = 300
    mode: Mode = "apply"

    def limited(self, count: int) -> int:
        """``count`` within the limits."""
        return min(max(count, self.min_instances), self.max_instances)


def of_document(document: Mapping[str, Any]) -> ScaleSettings | None:
    """The settings of a valid document. None where ``instance_count`` alone is the number."""
    given: dict[str, Any] = {
        name.removeprefix(PREFIX): value if isinstance(FIELDS.get(name.removeprefix(PREFIX)), tuple) else int(value)
        for name, value in (document.get("properties") or {}).items()
        if name.startswith(PREFIX)
    }
    own = dict(document.get("scale_settings") or {})
    if TARGET_UTILIZATION not in (own.pop("type", None), given.pop("type", None)):
        return None
    return ScaleSettings(**own, **given)
