"""Schemas of resources in requests and in answers.

Decides both forms of each resource. The JSON Schemas and the tables of wire fields define the
documents. This module defines Azure Resource Manager's envelope. Must not know paths.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from amphitrite.controlplane.api.openapi.field_schemas import ABSENT, TEXT, Schema, optional, value, wire_object
from amphitrite.controlplane.api.openapi.payload_schemas import ref, shape
from amphitrite.schemas import documents
from amphitrite.schemas.documents.schema_files import resolve
from amphitrite.schemas.wire import assets, computes
from amphitrite.schemas.wire import deployments as wire_deployment
from amphitrite.schemas.wire import endpoints as wire_endpoint
from amphitrite.schemas.wire.field_tables import Field

_ENDPOINTS = ("managed_online_endpoint", "kubernetes_online_endpoint")
_DEPLOYMENTS = ("managed_online_deployment", "kubernetes_online_deployment")
_COMPUTE = "kubernetes_compute"
#: Fields that are references on the wire, because clients register their value first.
_REFERENCES = ("model", "environment")

#: Answers, in the notation of ``payload_schemas``.
_ENVELOPES: Mapping[str, str] = {
    "Endpoint": "id name type properties:EndpointProperties kind=Managed|K8S location tags:{text} identity:Identity"
    " systemData:SystemData",
    "Identity": "type userAssignedIdentities?:any",
    "Deployment": "id name type properties:DeploymentProperties location tags:{text} sku:DeploymentSku"
    " systemData:SystemData",
    "DeploymentSku": "name capacity:positive",
    "Model": "id name type properties:ModelProperties systemData:SystemData",
    "ModelContainer": "id name type properties:ContainerProperties systemData:SystemData",
    "Environment": "id name type properties:EnvironmentProperties systemData:SystemData",
    "EnvironmentContainer": "id name type properties:ContainerProperties systemData:SystemData",
    "ContainerProperties": "description:text|null tags:{text} properties:{text} isArchived:flag latestVersion:text|null"
    " nextVersion:text|null",
    "Code": "id name type properties:CodeProperties systemData:SystemData",
    "Compute": "id name type properties:ComputeProperties location tags:{text}",
    "ComputeProperties": "computeType=Kubernetes|Local provisioningState:state description? resourceId?"
    " properties?:KubernetesProperties isAttachedCompute?:flag",
    "Workspace": "id name type properties:WorkspaceProperties location tags:{text} kind sku:WorkspaceSku",
    "WorkspaceProperties": "friendlyName workspaceId provisioningState containerRegistry",
    "WorkspaceSku": "name tier",
    "Datastore": "id name type properties:DatastoreProperties",
    "DatastoreProperties": "datastoreType=AzureBlob accountName containerName endpoint protocol"
    " credentials:DatastoreCredentials isDefault:flag tags:{text} properties:{text}",
    "DatastoreCredentials": "credentialsType=None",
    "Preview": "change=create|update|replace|retry|none reasons:[text] resource:Result",
}
_PAGED = (*("Endpoint", "Deployment", "Model", "ModelContainer"), *("Environment", "EnvironmentContainer", "Code"))
_STATE = "provisioningState:state status:any error:ErrorBody"
_FLAGS = "isArchived:flag isAnonymous:flag"
_ALWAYS = ("tags", "properties", "isArchived", "isAnonymous")
#: name -> (kinds of documents, fields, additional fields of answers, fields that are always sent).
_PROPERTIES: Mapping[str, tuple[Sequence[str], Sequence[Field], str, Sequence[str]]] = {
    "EndpointProperties": (
        *(_ENDPOINTS, wire_endpoint.PROPERTIES, f"scoringUri swaggerUri {_STATE}"),
        ("authMode", "properties", "traffic", "mirrorTraffic", "provisioningState", "scoringUri"),
    ),
    "DeploymentProperties": (
        *(_DEPLOYMENTS, wire_deployment.PROPERTIES, f"dataCollector:any model environmentId {_STATE}"),
        # scaleSettings is always an object, because the SDK reads its keys.
        ("endpointComputeType", "properties", "provisioningState", "scaleSettings"),
    ),
    "ModelProperties": (
        ("model",),
        assets.MODEL,
        f"{_FLAGS} notes:[text]",
        ("modelType", "modelUri", "flavors", *_ALWAYS),
    ),
    "EnvironmentProperties": (("environment",), assets.ENVIRONMENT, _FLAGS, ("osType", *_ALWAYS)),
    "CodeProperties": (("model",), assets.CODE, _FLAGS, ("codeUri", *_ALWAYS)),
    "KubernetesProperties": ((_COMPUTE,), computes.KUBERNETES, "instanceTypes:{InstanceType}", ()),
}


def components() -> dict[str, Schema]:
    """Schemas by the names that operations use."""
    made = {name: shape(text) for name, text in _ENVELOPES.items()}
    made |= {name: _answered(*row) for name, row in _PROPERTIES.items()}
    # Answers do not contain the secret.
    del made["KubernetesProperties"]["properties"]["kubeconfig"]
    pages = {f"{name}Page": shape(f"value:[{name}] nextLink?:uri") for name in (*_PAGED, "Compute", "Datastore")}
    either = {f"{name}OrPreview": {"anyOf": [ref(name), ref("Preview")]} for name in ("Endpoint", "Deployment")}
    result = {"anyOf": [ref("Endpoint"), ref("Deployment")]}
    return {**made, "InstanceType": _instance_type(sent=True), **pages, **either, "Result": result, **_requests()}


def _answered(kinds: Sequence[str], fields: Sequence[Field], more: str, always: Sequence[str]) -> Schema:
    """The wire object for all these kinds, which differ only in enumerations."""
    properties: dict[str, Any] = {}
    for kind in kinds:
        for name, found in _document(kind, fields, sent=True)["properties"].items():
            words = [*properties.get(name, {}).get("enum", ()), *found.get("enum", ())]
            properties[name] = {**found, "enum": [*dict.fromkeys(words)]} if words else found
    properties |= shape(more)["properties"]
    return {**_open(properties), **({"required": list(always)} if always else {})}


def _requests() -> dict[str, Schema]:
    tags, texts = (optional(_of_field(_ENDPOINTS[0], name)) for name in ("tags", "properties"))
    flag: Schema = {"type": ["boolean", "null"]}
    state = _unread(wire_endpoint.STATE)
    asset = {
        **state,
        "isArchived": flag,
        "isAnonymous": flag,
        **_unread(("jobName", "latestVersion", "nextVersion", "notes")),
    }
    texts_of = _of_field(_ENDPOINTS[0], "properties")
    injected, of_both = (
        optional({**texts_of, "properties": _unread(names)})
        for names in (wire_endpoint.INJECTED_IN_ENDPOINTS, wire_endpoint.INJECTED)
    )
    endpoint = {**state, **_unread(("scoringUri", "swaggerUri")), "properties": injected}
    endpoints = [_read(kind, wire_endpoint.PROPERTIES, endpoint) for kind in _ENDPOINTS]
    words = ["SystemAssigned", "UserAssigned", "None", "system_assigned", "user_assigned", "none"]
    assigned = {"type": ["object", "null"], "maxProperties": 1, "propertyNames": {**TEXT, "minLength": 1}}
    principal = _unread(("principalId", "tenantId"))
    identity = _open({"type": {"enum": words}, "userAssignedIdentities": assigned, **principal})
    # Data collection is not supported. Any value is refused.
    deployment = {**state, "dataCollector": {"anyOf": list(ABSENT)}, "properties": of_both}
    deployments = [_read(kind, wire_deployment.PROPERTIES, deployment) for kind in _DEPLOYMENTS]
    capacity = {"capacity": optional(_of_field(_DEPLOYMENTS[0], "instance_count"))}
    sku = _open({**capacity, **_unread(("name", "tier", "size", "family"))})
    no_text = {"anyOf": [{"const": ""}, *ABSENT]}
    return {
        "EndpointBody": _body(optional({"anyOf": endpoints}), tags=tags, identity=optional(identity), sku={}),
        "DeploymentBody": _body({"anyOf": deployments}, tags=tags, sku=optional(sku), identity={}),
        "ModelBody": _body(_read("model", assets.MODEL, asset)),
        "EnvironmentBody": _body(optional(_read("environment", assets.ENVIRONMENT, asset))),
        "CodeBody": _body(_read("model", assets.CODE, asset)),
        "ContainerBody": _body(optional(_open({"description": no_text, "tags": tags, "properties": texts, **asset}))),
        "ComputeBody": _body(_compute(), tags=tags, sku={}, identity={}),
    }


def _compute() -> Schema:
    root = documents.load(_COMPUTE)
    names = value(_listed(root)["properties"]["name"], root, sent=False)
    types = {"type": "object", "additionalProperties": _instance_type(sent=False), "propertyNames": names}
    nested = _read(_COMPUTE, computes.KUBERNETES, {"instanceTypes": optional(types)})
    flat = tuple(field for field in computes.PROPERTIES if field.name != "properties")
    outer = _read(_COMPUTE, flat, {**_unread(computes.READ_ONLY), "properties": nested})
    return {**outer, "required": [*outer["required"], "properties"]}


def _body(properties: Schema, **more: Schema) -> Schema:
    """The body of a resource: the fields that are read, and those that only answers have."""
    required = {} if ABSENT[0] in properties.get("anyOf", ()) else {"required": ["properties"]}
    return {**_open({**_unread(wire_endpoint.ENVELOPE), **more, "properties": properties}), **required}


def _read(kind: str, fields: Sequence[Field], more: Mapping[str, Schema]) -> Schema:
    """The ``properties`` of a request. ``more``: fields that the document does not have."""
    found = _document(kind, fields, sent=False)
    return {**found, "properties": {**found["properties"], **more}}


def _document(kind: str, fields: Sequence[Field], *, sent: bool) -> Schema:
    """The wire object of these fields of a document."""
    root = documents.load(kind)
    node = dict(resolve(root, root))
    named = dict(node["properties"])
    for name in _REFERENCES:
        found = resolve(named.get(name, {}), root)
        if "anyOf" in found:
            reference = resolve(found["anyOf"][0], root)
            named[name] = {**reference, "description": f"The {name}: its ARM id, or azureml:<name>:<version>."}
    wired = {field.name for field in fields}
    required = [name for name in node.get("required", ()) if name in wired]
    return wire_object(fields, {**node, "properties": named, "required": required}, root, sent=sent)


def _instance_type(*, sent: bool) -> Schema:
    root = documents.load(_COMPUTE)
    return wire_object(computes.INSTANCE_TYPE, _listed(root), root, sent=sent)


def _listed(root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of an instance type in the document of a compute."""
    return resolve(resolve(root["properties"]["instance_types"], root)["items"], root)


def _of_field(kind: str, field: str) -> Schema:
    root = documents.load(kind)
    return value(root["properties"][field], root, sent=False)


def _unread(names: Iterable[str]) -> dict[str, Schema]:
    """Properties with any value. Answers have them, and requests may repeat them without effect."""
    return {name: {} for name in sorted(names)}


def _open(properties: Mapping[str, Schema]) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}
