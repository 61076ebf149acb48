"""Checks of an autoscale setting with the resources that it is about.

Decides that its target is a deployment of a managed endpoint, which nothing else scales, and that
the metrics of its rules are of resources that exist. Must not know HTTP, or what a rule means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amphitrite.controlplane.core.autoscale_settings.setting import AutoscaleSetting, Target
from amphitrite.controlplane.core.desired import scale_settings
from amphitrite.controlplane.services.services import Services
from amphitrite.schemas.errors import Error, Violation


def check(services: Services, setting: AutoscaleSetting) -> None:
    """Call it and the write in one ``store.exclusive()``.

    Raises Error: ResourceNotFound (the target), Unsupported (it is of a Kubernetes endpoint),
    Conflict (its document scales it), InvalidDocument (a rule's source does not exist).
    """
    target = setting.target
    endpoint = services.store.get_endpoint(target.endpoint)
    deployment = services.store.get_deployment(target.endpoint, target.deployment or "")
    place = f"{endpoint.name}/{deployment.name}"
    if endpoint.document.get("compute"):
        raise Error(
            "Unsupported",
            f"{place} is a Kubernetes deployment; autoscale settings are for managed ones",
            target="targetResourceUri",
            hint="set scale_settings with type: target_utilization in the deployment's document",
        )
    if scale_settings.of_document(deployment.document) is not None:
        hint = "remove scale_settings from the deployment's document first; only one of the two can decide"
        raise Error("Conflict", f"the scale_settings of {place} scale it already", target=place, hint=hint)
    known: dict[Target, bool] = {}
    violations = []
    for at, profile in enumerate(setting.profiles):
        for number, rule in enumerate(profile.rules):
            source = rule.trigger.source
            if source not in known:
                known[source] = _exists(services, source)
            if not known[source]:
                named = source.endpoint if source.deployment is None else f"{source.endpoint}/{source.deployment}"
                path = ("properties", "profiles", at, "rules", number, "metricTrigger", "metricResourceUri")
                violations.append(Violation(path, f"{named} does not exist"))
    if violations:
        raise Error("InvalidDocument", str(violations[0]), target=setting.name, violations=violations)


def check_scale_settings(services: Services, endpoint: str, document: Mapping[str, Any]) -> list[Violation]:
    """What is wrong with ``scale_settings`` of a deployment that an autoscale setting scales."""
    if scale_settings.of_document(document) is None:
        return []
    setting = services.store.autoscale_settings.of_deployment(endpoint, str(document["name"]))
    if setting is None:
        return []
    message = f"the autoscale setting {setting.name} scales this deployment already"
    hint = f"delete it first: ml monitor autoscale delete -n {setting.name}"
    return [Violation(("scale_settings",), message, hint)]


def _exists(services: Services, source: Target) -> bool:
    try:
        if source.deployment is None:
            services.store.get_endpoint(source.endpoint)
        else:
            services.store.get_deployment(source.endpoint, source.deployment)
    except Error as error:
        if error.code == "ResourceNotFound":
            return False
        raise
    return True
