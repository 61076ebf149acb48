"""Resources as they are answered, in the OpenAPI document.

Decides their shapes: documents by the JSON Schemas and the tables of wire fields, the envelope here. Must not know
requests or paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amphitrite.controlplane.api.openapi_shapes import ANY, TEXT, TEXTS, closed, listed, nullable, page, ref
from amphitrite.controlplane.api.openapi_wire import Schema, more, reply
from amphitrite.schemas import documents
from amphitrite.schemas.documents.schema_files import resolve
from amphitrite.schemas.wire import assets, computes, deployments, endpoints
from amphitrite.schemas.wire.field_tables import Field

_STATES = ["Creating", "Updating", "Scaling", "Succeeded", "Failed", "Deleting", "Canceled"]


def _document(kinds: Sequence[str], fields: Sequence[Field]) -> Schema:
    """The wire object of documents of these kinds together."""
    properties: dict[str, Any] = {}
    for kind in kinds:
        root = documents.load(kind)
        for name, found in reply(fields, resolve(root, root), root)["properties"].items():
            # The two kinds differ in enumerations only.
            words = [*properties.get(name, {}).get("enum", ()), *found.get("enum", ())]
            properties[name] = {**found, "enum": [*dict.fromkeys(words)]} if words else found
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _resource(properties: Schema, required: Schema | None = None, optional: Schema | None = None) -> Schema:
    """Azure Resource Manager's envelope."""
    return closed({"id": TEXT, "name": TEXT, "type": TEXT, "properties": properties, **(required or {})}, optional)


def _state() -> Schema:
    return {"provisioningState": {"enum": _STATES}, "status": ANY, "error": ref("ErrorBody")}


def _endpoint() -> Schema:
    kinds = ("managed_online_endpoint", "kubernetes_online_endpoint")
    properties = more(_document(kinds, endpoints.PROPERTIES), scoringUri=TEXT, swaggerUri=TEXT, **_state())
    properties["required"] = ["authMode", "properties", "traffic", "mirrorTraffic", "provisioningState", "scoringUri"]
    identity = closed({"type": TEXT}, {"userAssignedIdentities": ANY})
    envelope = {
        "kind": {"enum": ["Managed", "K8S"]},
        "location": TEXT,
        "tags": TEXTS,
        "identity": identity,
        "systemData": ref("SystemData"),
    }
    return _resource(properties, envelope)


def _deployment() -> Schema:
    kinds = ("managed_online_deployment", "kubernetes_online_deployment")
    fields = [field for field in deployments.PROPERTIES if field.name != "data_collector"]
    properties = more(_document(kinds, fields), dataCollector=ANY, **_state())
    properties["properties"] |= {"model": TEXT, "environmentId": TEXT}
    # Empty where nothing is said, and always an object: the SDK reads its keys.
    properties["required"] = ["endpointComputeType", "properties", "provisioningState", "scaleSettings"]
    sku = closed({"name": TEXT, "capacity": {"type": "integer", "minimum": 1}})
    envelope = {"location": TEXT, "tags": TEXTS, "sku": sku, "systemData": ref("SystemData")}
    return _resource(properties, envelope)


def _version(kind: str, fields: Sequence[Field], required: Sequence[str]) -> Schema:
    """Of a model, an environment or code."""
    flag: Schema = {"type": "boolean"}
    properties = more(_document((kind,), fields), isArchived=flag, isAnonymous=flag)
    properties["required"] = [*required, "tags", "properties", "isArchived", "isAnonymous"]
    return _resource(properties, {"systemData": ref("SystemData")})


def _container() -> Schema:
    properties = closed(
        {
            "description": nullable(TEXT),
            "tags": TEXTS,
            "properties": TEXTS,
            "isArchived": {"type": "boolean"},
            "latestVersion": nullable(TEXT),
            "nextVersion": nullable(TEXT),
        }
    )
    return _resource(properties, {"systemData": ref("SystemData")})


def _compute() -> Schema:
    root = documents.load("kubernetes_compute")
    named = resolve(root["properties"]["instance_types"], root)
    one = reply(computes.INSTANCE_TYPE, resolve(named["items"], root), root)
    inner = more(reply(computes.KUBERNETES, root, root), instanceTypes={"type": "object", "additionalProperties": one})
    inner["properties"] = {name: value for name, value in inner["properties"].items() if name != "kubeconfig"}
    properties = closed(
        {"computeType": {"enum": ["Kubernetes", "Local"]}, "provisioningState": {"enum": _STATES}},
        {"description": TEXT, "resourceId": TEXT, "properties": inner, "isAttachedCompute": {"type": "boolean"}},
    )
    return _resource(properties, {"location": TEXT, "tags": TEXTS})


def _workspace() -> dict[str, Schema]:
    workspace = closed({"friendlyName": TEXT, "workspaceId": TEXT, "provisioningState": TEXT})
    datastore = closed(
        {
            "datastoreType": {"const": "AzureBlob"},
            "accountName": TEXT,
            "containerName": TEXT,
            "endpoint": TEXT,
            "protocol": TEXT,
            "credentials": closed({"credentialsType": {"const": "None"}}),
            "isDefault": {"type": "boolean"},
            "tags": TEXTS,
            "properties": TEXTS,
        }
    )
    sku = closed({"name": TEXT, "tier": TEXT})
    return {
        "Workspace": _resource(workspace, {"location": TEXT, "tags": TEXTS, "kind": TEXT, "sku": sku}),
        "Datastore": _resource(datastore),
    }


def _previews() -> dict[str, Schema]:
    changes = {"enum": ["create", "update", "replace", "retry", "none"]}
    either = {"anyOf": [ref("Endpoint"), ref("Deployment")]}
    previews = {"Preview": closed({"change": changes, "reasons": listed(TEXT), "resource": either})}
    for name in ("Endpoint", "Deployment"):
        previews[f"{name}OrPreview"] = {"anyOf": [ref(name), ref("Preview")]}
    return {**previews, "Result": either}


def components() -> dict[str, Schema]:
    """Schemas by the names that operations use."""
    resources = {
        "Endpoint": _endpoint(),
        "Deployment": _deployment(),
        "Model": _version("model", assets.MODEL, ("modelType", "modelUri", "flavors")),
        "ModelContainer": _container(),
        "Environment": _version("environment", assets.ENVIRONMENT, ("osType",)),
        "EnvironmentContainer": _container(),
        "Code": _version("model", assets.CODE, ("codeUri",)),
        "Compute": _compute(),
        **_workspace(),
    }
    return {**resources, **{f"{name}Page": page(name) for name in resources if name != "Workspace"}, **_previews()}
