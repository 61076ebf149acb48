"""The output of ``show`` and ``list``: Azure ML's snake_case objects, made from wire responses.

Decides the keys and their order (those of Azure ML's clients), and omits absent values. Must not
validate: our own responses are well-formed. The last key, ``status``, is our own: the condition of
the resource.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from amphitrite.schemas import casing
from amphitrite.schemas.wire import assets, deployments, endpoints
from amphitrite.schemas.wire.field_tables import Field, enumeration, show

_CREATION = (
    Field("created_at", "createdAt"),
    Field("created_by", "createdBy"),
    Field("created_by_type", "createdByType"),
    Field("last_modified_at", "lastModifiedAt"),
    Field("last_modified_by", "lastModifiedBy"),
    Field("last_modified_by_type", "lastModifiedByType"),
)
_DEPLOYMENT_BODY = (
    Field("model", "model", read=lambda model: _reference(model)),
    Field("model_mount_path", "modelMountPath"),
    deployments.CODE_CONFIGURATION,
    Field("environment", "environmentId", read=lambda environment: _reference(environment)),
    Field("environment_variables", "environmentVariables"),
    Field("app_insights_enabled", "appInsightsEnabled"),
    deployments.SCALE_SETTINGS,
    deployments.REQUEST_SETTINGS,
    Field("liveness_probe", "livenessProbe", fields=deployments.PROBE),
    Field("readiness_probe", "readinessProbe", fields=deployments.PROBE),
    Field("provisioning_state", "provisioningState"),
)
_DEPLOYMENT_TAIL = (
    enumeration("type", "endpointComputeType"),
    Field("instance_type", "instanceType"),
    deployments.RESOURCES,
    deployments.DATA_COLLECTOR,
    enumeration("egress_public_network_access", "egressPublicNetworkAccess"),
    Field("private_network_connection", "privateNetworkConnection"),
)
_MODEL_HEAD = (Field("type", "modelType"), Field("path", "modelUri"))
_MODEL_TAIL = (
    Field("description", "description"),
    Field("properties", "properties"),
    Field("tags", "tags"),
    Field("stage", "stage"),
)


def show_endpoint(resource: Mapping[str, Any], deployments: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """An endpoint. ``deployments`` (wire resources): those without traffic are shown with 0."""
    body = resource["properties"]
    traffic = dict(body.get("traffic") or {})
    mirror = dict(body.get("mirrorTraffic") or {})
    named = {name.lower() for name in (*traffic, *mirror)}
    for deployment in deployments:
        if deployment["name"].lower() not in named:
            traffic[deployment["name"]] = 0
    compute = body.get("compute")
    return _without_none(
        id=resource.get("id"),
        name=resource.get("name"),
        description=body.get("description"),
        tags=resource.get("tags") or {},
        provisioning_state=body.get("provisioningState"),
        properties={**_system_values(resource), **endpoints.entries(body)},
        auth_mode=casing.to_document(body.get("authMode")),
        scoring_uri=body.get("scoringUri"),
        location=resource.get("location"),
        openapi_uri=body.get("swaggerUri"),
        identity=_identity(resource.get("identity")),
        traffic=traffic,
        kind="K8S" if compute else (resource.get("kind") or "Managed"),
        compute=_reference(compute) if compute else None,
        mirror_traffic=mirror,
        rollout=endpoints.rollout(body),
        public_network_access=None if compute else casing.to_document(body.get("publicNetworkAccess")),
        status=_status(body),
    )


def show_deployment(resource: Mapping[str, Any]) -> dict[str, Any]:
    """A deployment. The name of its endpoint comes from the ARM id."""
    body = resource["properties"]
    tail = show(_DEPLOYMENT_TAIL, body)
    kubernetes = tail.get("type") == "kubernetes"
    segments = resource["id"].split("/")
    return _without_none(
        name=resource.get("name"),
        endpoint_name=segments[-3],
        id=resource["id"],
        description=body.get("description"),
        tags=resource.get("tags") or {},
        properties=body.get("properties") or {},
        **show(_DEPLOYMENT_BODY, body),
        instance_count=(resource.get("sku") or {}).get("capacity"),
        **tail,
        creation_context=None if kubernetes else _creation(resource),
        status=_status(body),
    )


def show_model(resource: Mapping[str, Any]) -> dict[str, Any]:
    """A model version. Its name comes from the ARM id; its version is the name of the resource."""
    body = resource["properties"]
    return _without_none(
        name=resource["id"].split("/")[-3],
        id=_reference(resource["id"]),
        **show(_MODEL_HEAD, body),
        version=resource["name"],
        **show(_MODEL_TAIL, body),
        flavors=body.get("flavors") or None,
        creation_context=_creation(resource),
    )


def show_model_container(resource: Mapping[str, Any]) -> dict[str, Any]:
    """The container of all versions of a model.

    ``type`` is always the default, as Azure ML prints it.
    """
    body = resource["properties"]
    return _without_none(
        name=resource["name"],
        id=_reference(resource["id"]),
        description=body.get("description"),
        type="custom_model",
        properties=body.get("properties") or {},
        tags=body.get("tags") or {},
        creation_context=_creation(resource),
        latest_version=body.get("latestVersion"),
    )


def show_environment(resource: Mapping[str, Any]) -> dict[str, Any]:
    """An environment version."""
    body = resource["properties"]
    output = show(assets.ENVIRONMENT, body)
    return _without_none(
        name=resource["id"].split("/")[-3],
        id=_reference(resource["id"]),
        description=output.pop("description", None),
        tags=output.pop("tags", {}),
        version=resource["name"],
        creation_context=_creation(resource),
        **{key: value for key, value in output.items() if key != "properties"},
    )


def show_environment_container(resource: Mapping[str, Any]) -> dict[str, Any]:
    """The container of all versions of an environment."""
    output = show_model_container(resource)
    del output["type"]
    return output


def _without_none(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _reference(arm_id: str) -> str:
    return arm_id if arm_id.startswith("azureml:") else f"azureml:{arm_id}"


def _creation(resource: Mapping[str, Any]) -> dict[str, Any] | None:
    return show(_CREATION, resource.get("systemData") or {}) or None


def _system_values(resource: Mapping[str, Any]) -> dict[str, str]:
    """The values of systemData that Azure ML shows in ``properties``."""
    system_data = resource.get("systemData") or {}
    output = {name: system_data[name] for name in ("createdBy", "createdAt", "lastModifiedAt") if system_data.get(name)}
    return {
        name: f"{value[:-6]}{value[-6:].replace(':', '')}" if name.endswith("At") else value
        for name, value in output.items()
    }


def _identity(body: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if not body:
        return None
    fields = [enumeration("type", "type"), Field("principal_id", "principalId"), Field("tenant_id", "tenantId")]
    output = show(fields, body)
    if body.get("userAssignedIdentities"):
        output["user_assigned_identities"] = [
            {"resource_id": name, **show([Field("client_id", "clientId")], facts or {})}
            for name, facts in body["userAssignedIdentities"].items()
        ]
    return output


def _status(body: Mapping[str, Any]) -> dict[str, Any] | None:
    status = {casing.snake(key): value for key, value in (body.get("status") or {}).items()}
    if body.get("error"):
        status["error"] = body["error"]
    return status or None
