"""``scale_settings`` of type ``target_utilization``, as a deployment's document has them.

Decides the defaults: Azure ML's for what Azure has. Must not know samples, or what is recommended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

TARGET_UTILIZATION = "target_utilization"

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
    given = dict(document.get("scale_settings") or {})
    if given.pop("type", "default") != TARGET_UTILIZATION:
        return None
    return ScaleSettings(**given)
