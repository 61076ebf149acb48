"""The scale of a deployment: the number of instances that a scaler has set, and its history.

Decides which number is in force. Must not know how a scaler finds a number, nor how it is stored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from amphitrite.controlplane.core.desired.resources import Deployment
from amphitrite.controlplane.core.desired.scale_settings import TARGET_UTILIZATION, Mode, ScaleSettings
from amphitrite.controlplane.core.observed.status import Ref

#: The scaler of a number that Azure Monitor's autoscale settings have set.
AUTOSCALE_SETTING = "autoscale_setting"


@dataclass(frozen=True, slots=True)
class Scale:
    """What a scaler has set for one deployment. Times in seconds since the epoch.

    - ``count``: of instances. ``scaler``: who sets it: ``target_utilization``, or another one.
    - ``reason``: of the last change, one line. ``changed_at``: when that was.
    - ``shrunk_at``: when instances were last taken away, 0 if never.
    - ``used_at``: when the deployment last had a request, as far as that was noticed.
    - ``start_s``: seconds that an instance needs until it is ready, as seen last.
    - ``recommended``: what was recommended last and is not in force.
    - ``version``: grows with each write, so that of two writers of one version one fails.
    """

    count: int
    scaler: str
    reason: str = ""
    changed_at: float = 0.0
    shrunk_at: float = 0.0
    used_at: float = 0.0
    start_s: float = 0.0
    recommended: int | None = None
    version: int = 0


@dataclass(frozen=True, slots=True)
class ScaleEvent:
    """A change of the number of instances, or, in mode ``recommend``, what would have been one.

    ``by``: ``target_utilization``, the name of an autoscale setting, or what else has set it.
    """

    at: float
    before: int
    after: int
    reason: str
    by: str
    mode: Mode = "apply"


@dataclass(frozen=True, slots=True)
class ScaleChange:
    """A write of a scale. ``before``: as it was read; None if there was none. ``event``: None if
    nothing is to be seen in the history."""

    ref: Ref
    before: Scale | None
    after: Scale
    event: ScaleEvent | None = None


@dataclass(frozen=True, slots=True)
class InstanceCounts:
    """Numbers of instances of one deployment. ``recommended``: what a scaler would set, and does
    not."""

    endpoint: str
    deployment: str
    wanted: int
    ready: int
    recommended: int | None = None


def count_in_force(settings: ScaleSettings | None, instance_count: int, scale: Scale | None) -> int:
    """The number of instances that is wanted now. ``instance_count``: the document's."""
    if scale is not None and scale.scaler != TARGET_UTILIZATION:
        return scale.count
    if settings is None or settings.mode != "apply":
        return instance_count
    return settings.limited(instance_count if scale is None else scale.count)


def scaled(deployment: Deployment, scale: Scale | None) -> Deployment:
    """``deployment`` with the number of instances that is in force. A paused one has none, whatever
    a scaler wants."""
    if deployment.pause is not None:
        return deployment
    settings = deployment.scale_settings
    count = count_in_force(settings, deployment.instance_count, scale)
    reason = "" if scale is None or scale.recommended is not None else scale.reason
    if (count, reason) == (deployment.instance_count, deployment.scale_reason):
        return deployment
    return replace(deployment, instance_count=count, scale_reason=reason)
