"""Routes of autoscale settings, as ``Microsoft.Insights/autoscaleSettings`` has them.

Decides HTTP, and what is said about a setting besides what was sent: warnings, and what it comes to
now. Azure has no ETag of settings; here a write may have preconditions. Must not know the rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Depends
from starlette.responses import JSONResponse, Response

from amphitrite.controlplane.api.azure import resource_bodies
from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.paging import Page
from amphitrite.controlplane.api.http.request_bodies import Body, Conditions, IfMatch
from amphitrite.controlplane.core.autoscale_settings import evaluation, setting_reading
from amphitrite.controlplane.core.autoscale_settings.setting import AutoscaleSetting
from amphitrite.controlplane.core.observed.status import Ref
from amphitrite.controlplane.metrics import setting_measurement
from amphitrite.controlplane.services import autoscale_changes
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.state.autoscale_settings import StoredSetting
from amphitrite.schemas.errors import Error, Violation
from amphitrite.schemas.names import key

SUBSCRIPTION = "/subscriptions/{subscription}/providers/microsoft.insights/autoscaleSettings"
GROUP = "/subscriptions/{subscription}/resourceGroups/{resource_group}/providers/microsoft.insights/autoscaleSettings"
#: As Azure's names of settings, but for a few characters less.
_NAME = re.compile(r"[^<>*%&:?+/\\\x00-\x1f\x7f]{1,254}[^<>*%&:?+/\\\x00-\x1f\x7f .]|[A-Za-z0-9]")
_TEXTS_MAX = 50
_FIELDS = ("location", "tags", "properties")
#: Clients send back what they have read.
_READ_ONLY = ("id", "name", "type", "systemData", "status", "warnings")


def _require_scope(here: Here, subscription: str, resource_group: str | None = None) -> None:
    own = (here.settings.subscription, here.settings.resource_group)
    if key(subscription) == key(own[0]) and (resource_group is None or key(resource_group) == key(own[1])):
        return
    asked = subscription if resource_group is None else f"{subscription}/{resource_group}"
    message = f"{asked} does not exist; the subscription and resource group of this server are {'/'.join(own)}"
    raise Error("ResourceNotFound", message, target=asked, hint="leave out -g and --subscription")


router = APIRouter(dependencies=[Depends(_require_scope)])


@router.get(SUBSCRIPTION)
def list_in_subscription(here: Here, pager: Page) -> dict[str, Any]:
    return pager.page(here.store.autoscale_settings.list_all(), lambda one: _body(here, one))


@router.get(GROUP)
def list_(here: Here, pager: Page) -> dict[str, Any]:
    return pager.page(here.store.autoscale_settings.list_all(), lambda one: _body(here, one))


@router.get(f"{GROUP}/{{name}}")
def get(name: str, here: Here) -> Response:
    return _answer(here, here.store.autoscale_settings.get(name), 200)


@router.put(f"{GROUP}/{{name}}")
def put(name: str, body: Body, conditions: IfMatch, here: Here) -> Response:
    """Creates or replaces a setting."""
    with here.store.exclusive():
        return _write(here, name, _fields(name, body), conditions)


@router.patch(f"{GROUP}/{{name}}")
def patch(name: str, body: Body, conditions: IfMatch, here: Here) -> Response:
    """Replaces the tags and those properties that are sent."""
    given = _fields(name, body)
    with here.store.exclusive():
        stored = here.store.autoscale_settings.get(name)
        properties = given.pop("properties", None)
        if properties is not None and not isinstance(properties, dict):
            raise _invalid(name, "properties", "must be an object")
        merged = {**stored.body, **given, "properties": {**stored.body["properties"], **(properties or {})}}
        return _write(here, stored.name, merged, conditions)


@router.delete(f"{GROUP}/{{name}}")
def delete(name: str, conditions: IfMatch, here: Here) -> Response:
    """Deletes a setting. The number of instances stays as it is. As in Azure, 204 if there is
    none."""
    deleted = here.store.autoscale_settings.delete(name, if_match=conditions.if_match)
    return Response(status_code=200 if deleted else 204)


def _write(here: Services, name: str, fields: Mapping[str, Any], conditions: Conditions) -> Response:
    if _NAME.fullmatch(name) is None:
        message = "must have 1 to 255 characters, none of <>*%&:?+/\\, and no period or space at its end"
        raise _invalid(name[:80], "name", message)
    properties = fields.get("properties") or {}
    setting = setting_reading.read(name, properties, here.workspace)
    autoscale_changes.check(here, setting)
    body = {
        "location": fields.get("location") or here.settings.location,
        "tags": _tags(name, fields),
        "properties": {**properties, "name": name},
    }
    stored, created = here.store.autoscale_settings.put(
        name,
        (setting.target.endpoint, setting.target.deployment or ""),
        body,
        if_match=conditions.if_match,
        if_none_match=conditions.if_none_match,
        now=here.clock(),
    )
    here.wake()
    return _answer(here, stored, 201 if created else 200)


def _fields(name: str, body: Mapping[str, Any]) -> dict[str, Any]:
    for field, value in body.items():
        if field not in (*_FIELDS, *_READ_ONLY):
            raise _invalid(name, field, f"there is no such field; allowed: {', '.join(_FIELDS)}")
        if field == "location" and not (
            value is None or (isinstance(value, str) and len(value) <= 90 and "\0" not in value)
        ):
            raise _invalid(name, field, "must be text of at most 90 characters without NUL")
    return {field: body[field] for field in _FIELDS if body.get(field) is not None}


def _tags(name: str, fields: Mapping[str, Any]) -> dict[str, str]:
    tags: Any = fields.get("tags") or {}
    texts = [*tags, *tags.values()] if isinstance(tags, dict) else [None]
    if len(tags) > _TEXTS_MAX or not all(isinstance(text, str) and "\0" not in text for text in texts):
        raise _invalid(name, "tags", f"must be an object of at most {_TEXTS_MAX} texts without NUL")
    return dict(tags)


def _invalid(name: str, field: str, message: str) -> Error:
    violation = Violation((field,), message)
    return Error("InvalidDocument", str(violation), target=name, violations=[violation])


def _answer(here: Services, stored: StoredSetting, status: int) -> Response:
    return JSONResponse(_body(here, stored), status, {"ETag": stored.etag})


def _body(here: Services, stored: StoredSetting) -> dict[str, Any]:
    """Azure's AutoscaleSettingResource, with ``status`` and, if there are any, ``warnings``."""
    group = here.workspace.partition("/providers/")[0]
    body = {
        "id": f"{group}/providers/microsoft.insights/autoscalesettings/{stored.name}",
        "name": stored.name,
        "type": "Microsoft.Insights/autoscaleSettings",
        "location": stored.body["location"],
        "tags": stored.body["tags"],
        "properties": {"enabled": True, "notifications": [], **stored.body["properties"]},
        "systemData": resource_bodies.system_data(stored.created_at, stored.modified_at),
    }
    try:
        setting = setting_reading.read(stored.name, stored.body["properties"], here.workspace)
    except Error as error:
        return {**body, "status": {"reason": f"it has no effect: {error.message}"}}
    warnings = setting_reading.warnings(setting)
    return {**body, "status": _status(here, setting), **({"warnings": warnings} if warnings else {})}


def _status(here: Services, setting: AutoscaleSetting) -> dict[str, Any]:
    """What the setting comes to now: the number that is wanted, the profile in force, and why."""
    target = setting.target
    place, ref = f"{target.endpoint}/{target.deployment}", Ref(target.endpoint, target.deployment)
    deployments = (one for one in here.store.load_world().deployments if Ref(one.endpoint, one.name) == ref)
    deployment = next(deployments, None)
    if deployment is None:
        return {"reason": f"{place} does not exist; the setting waits for it"}
    count = deployment.instance_count
    if deployment.pause is not None:
        return {"instances": count, "reason": f"{place} is paused"}
    if not setting.enabled:
        return {"instances": count, "reason": "the setting is not enabled"}
    now = here.clock()
    values = setting_measurement.measure(setting, here.metrics, now, bool(here.agents.live(now)))
    scale = here.store.scales().get(ref)
    outcome = evaluation.evaluate(setting, values, now, count, 0.0 if scale is None else scale.changed_at)
    return {"instances": count, "profile": outcome.profile, "reason": outcome.reason}
