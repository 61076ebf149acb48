"""The scaler of deployments that have an autoscale setting.

Decides when a setting is evaluated: at once after it has changed or while the number is outside
its limits, else every half minute, as in Azure. Must not know the rules, or how a number is stored.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from amphitrite.controlplane.core.autoscale_settings import evaluation, profiles, setting_reading
from amphitrite.controlplane.core.autoscale_settings.setting import AutoscaleSetting
from amphitrite.controlplane.core.observed.status import Ref
from amphitrite.controlplane.core.scaling.scales import AUTOSCALE_SETTING, Scale, ScaleChange, ScaleEvent
from amphitrite.controlplane.metrics import setting_measurement
from amphitrite.controlplane.reconciliation.autoscaler import Proposals
from amphitrite.controlplane.store.reports.metric_minutes import StoredMetrics
from amphitrite.controlplane.store.state.autoscale_settings import StoredSetting
from amphitrite.controlplane.store.state.store import Store
from amphitrite.schemas.errors import Error

log = logging.getLogger(__name__)

EVERY_S = 30.0


@dataclass(frozen=True, slots=True)
class _Known:
    """A setting as it was read. ``due``: when it is evaluated next. None: this release cannot read
    it."""

    etag: str
    setting: AutoscaleSetting | None
    due: float = 0.0


class SettingScaler:
    """Implements ``autoscaler.Scaler``. ``proxies_count``: whether a proxy reports now.
    ``workspace``: the ARM id of this server's."""

    def __init__(
        self, store: Store, metrics: StoredMetrics, proxies_count: Callable[[float], bool], workspace: str
    ) -> None:
        self._store, self._metrics = store, metrics
        self._proxies_count, self._workspace = proxies_count, workspace
        self._known: dict[str, _Known] = {}

    def propose(self, now: float) -> Proposals:
        stored = self._store.autoscale_settings.list_all()
        self._known = {one.name: self._read(one) for one in stored}
        if not stored:
            return Proposals()
        scales = self._store.scales()
        deployments = {
            Ref(one.endpoint, one.name): one for one in self._store.load_world().deployments if not one.deleting
        }
        changes = []
        for name, known in self._known.items():
            setting = known.setting
            if setting is None or not setting.enabled:
                continue
            ref = Ref(setting.target.endpoint, setting.target.deployment)
            deployment, scale = deployments.get(ref), scales.get(ref)
            if deployment is None or deployment.pause is not None:
                continue
            if scale is not None and scale.scaler != AUTOSCALE_SETTING:
                continue  # Something else has the say.
            count = deployment.instance_count
            if now < known.due and profiles.in_force(setting, now).capacity.limited(count) == count:
                continue
            self._known[name] = replace(known, due=now + EVERY_S)
            values = setting_measurement.measure(setting, self._metrics, now, self._proxies_count(now))
            changed_at = 0.0 if scale is None else scale.changed_at
            outcome = evaluation.evaluate(setting, values, now, count, changed_at)
            if outcome.count != count:
                changes.append(_change(ref, setting.name, scale, count, outcome, now))
        return Proposals(tuple(changes), min((one.due for one in self._known.values() if one.due), default=None))

    def _read(self, stored: StoredSetting) -> _Known:
        known = self._known.get(stored.name)
        if known is not None and known.etag == stored.etag:
            return known
        try:
            setting = setting_reading.read(stored.name, stored.body["properties"], self._workspace)
        except Error as error:
            # Another release has accepted it, or the workspace has another name now.
            log.error("the autoscale setting %s has no effect: %s", stored.name, error.message)
            return _Known(stored.etag, None)
        return _Known(stored.etag, setting)


def _change(
    ref: Ref, by: str, before: Scale | None, count: int, outcome: evaluation.Outcome, now: float
) -> ScaleChange:
    shrunk_at = now if outcome.count < count else 0.0 if before is None else before.shrunk_at
    base = Scale(outcome.count, AUTOSCALE_SETTING) if before is None else before
    after = replace(base, count=outcome.count, reason=outcome.reason, changed_at=now, shrunk_at=shrunk_at)
    return ScaleChange(ref, before, after, ScaleEvent(now, count, outcome.count, outcome.reason, by))
