"""Bodies of requests in the OpenAPI document.

Decides what a client may send where: documents by their JSON Schemas and the tables of wire fields, everything else
here. Must not know answers or paths. A body that is described may still be refused for what is there or not there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from amphitrite.controlplane.api.agents.routing_tables import VERSION_MAX
from amphitrite.controlplane.api.azure.workspace import SECRET_HOURS_MAX
from amphitrite.controlplane.api.openapi_wire import (
    ABSENT,
    TEXT,
    Schema,
    absent,
    more,
    optional,
    request,
    unread,
    value,
)
from amphitrite.dataplane.metrics.counters import CREDENTIAL, FIELD, NAME
from amphitrite.schemas import documents
from amphitrite.schemas.documents.schema_files import resolve
from amphitrite.schemas.wire import assets, computes, deployments, endpoints
from amphitrite.schemas.wire.field_tables import Field

_ENVELOPE = unread(endpoints.ENVELOPE)
_STATE = unread(endpoints.STATE)
#: Registered first, and therefore a reference on the wire.
_REFERENCES = ("model", "environment")
_FLAG: Schema = {"type": ["boolean", "null"]}


def _document(kind: str, fields: Sequence[Field], *path: str) -> Schema:
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
    return request(fields, {**node, "properties": named, "required": required}, root)


def _texts(field: str) -> Schema:
    root = documents.load("managed_online_endpoint")
    return value(root["properties"][field], root, sent=False)


def _tags() -> Schema:
    return optional(_texts("tags"))


def _envelope(properties: Schema, **more_: Schema) -> Schema:
    """A resource: what is read of it, and what our answers have beside that."""
    required = {} if "anyOf" in properties and ABSENT[0] in properties["anyOf"] else {"required": ["properties"]}
    known = {**_ENVELOPE, **more_, "properties": properties}
    return {"type": "object", "properties": known, "additionalProperties": False, **required}


_IDENTITY: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "type": {"enum": ["SystemAssigned", "UserAssigned", "None", "system_assigned", "user_assigned", "none"]},
        "userAssignedIdentities": {
            "type": ["object", "null"],
            "maxProperties": 1,
            "propertyNames": {**TEXT, "minLength": 1},
        },
        **unread(("principalId", "tenantId")),
    },
}


def _endpoint() -> Schema:
    state = {**_STATE, **unread(("scoringUri", "swaggerUri"))}
    managed = more(_document("managed_online_endpoint", endpoints.PROPERTIES), **state)
    cluster = more(_document("kubernetes_online_endpoint", endpoints.PROPERTIES), **state)
    texts = _texts("properties")
    injected = {**texts, "properties": unread(endpoints.INJECTED)}
    managed, cluster = (more(one, properties=optional(injected)) for one in (managed, cluster))
    return _envelope(optional({"anyOf": [managed, cluster]}), tags=_tags(), identity=optional(_IDENTITY), sku={})


def _deployment() -> Schema:
    kinds = [
        # Data are not collected here: whatever it says is refused.
        more(_document(f"{kind}_online_deployment", deployments.PROPERTIES), **_STATE, **absent("dataCollector"))
        for kind in ("managed", "kubernetes")
    ]
    root = documents.load("managed_online_deployment")
    count = value(root["properties"]["instance_count"], root, sent=False)
    sku = {
        "type": "object",
        "properties": {"capacity": optional(count), **unread(("name", "tier", "size", "family"))},
        "additionalProperties": False,
    }
    return _envelope({"anyOf": kinds}, tags=_tags(), sku=optional(sku), identity={})


def _version(kind: str, fields: Sequence[Field]) -> Schema:
    """Of a model, an environment or code, which has the fields of a model."""
    properties = _document(kind, fields)
    state = {**_STATE, "isArchived": _FLAG, "isAnonymous": _FLAG, **unread(("jobName", "latestVersion", "nextVersion"))}
    properties = more(properties, **state)
    return _envelope(properties if "required" in properties else optional(properties))


def _container() -> Schema:
    properties = {
        "description": {"anyOf": [{"const": ""}, *ABSENT]},
        "tags": _tags(),
        "properties": optional(_texts("properties")),
        "isArchived": _FLAG,
        "isAnonymous": _FLAG,
        **_STATE,
        **unread(("jobName", "latestVersion", "nextVersion")),
    }
    return _envelope(optional({"type": "object", "properties": properties, "additionalProperties": False}))


def _compute() -> Schema:
    outer, inner = computes.PROPERTIES, computes.KUBERNETES
    root = documents.load("kubernetes_compute")
    nested = _document("kubernetes_compute", inner)
    listed = resolve(resolve(root["properties"]["instance_types"], root)["items"], root)
    one = request(computes.INSTANCE_TYPE, listed, root)
    names = value(listed["properties"]["name"], root, sent=False)
    types = {"type": "object", "additionalProperties": one, "propertyNames": names}
    nested = more(nested, instanceTypes=optional(types))
    flat = tuple(field for field in outer if field.name != "properties")
    properties = more(_document("kubernetes_compute", flat), **unread(computes.READ_ONLY), properties=nested)
    properties["required"] = [*properties["required"], "properties"]
    return _envelope(properties, tags=_tags(), sku={}, identity={})


_VERSION: Schema = {"type": ["integer", "null"], "minimum": 0, "maximum": VERSION_MAX}
_SAID: Schema = {"type": ["string", "null"]}
_COUNT: Schema = {"type": "number", "minimum": 0, "exclusiveMaximum": 2**63}


def _by_name(pattern: re.Pattern[str], content: Schema) -> Schema:
    names = {"pattern": f"^(?:{pattern.pattern})$"}
    return {"type": "object", "propertyNames": names, "additionalProperties": content}


def components() -> dict[str, Schema]:
    """Schemas by the names that operations use."""
    return {
        "EndpointBody": _endpoint(),
        "DeploymentBody": _deployment(),
        "ModelBody": _version("model", assets.MODEL),
        "EnvironmentBody": _version("environment", assets.ENVIRONMENT),
        "CodeBody": _version("model", assets.CODE),
        "ContainerBody": _container(),
        "ComputeBody": _compute(),
        "RegenerateKeysBody": {
            "type": "object",
            "required": ["keyType"],
            "properties": {
                "keyType": {"enum": ["Primary", "Secondary", "primary", "secondary"]},
                "keyValue": {"description": "What Azure's SDK sends: the current key. It is not what the key becomes."},
            },
        },
        "ListSecretsBody": {
            "type": "object",
            "properties": {"expireAfterHours": {"type": "integer", "minimum": 1, "maximum": SECRET_HOURS_MAX}},
        },
        "PendingUploadBody": {
            "type": "object",
            "properties": {"pendingUploadType": {"const": "TemporaryBlobReference"}},
        },
        "OAuthForm": {
            "type": "object",
            "required": ["grant_type", "client_id", "client_secret", "scope"],
            "maxProperties": 32,
            "additionalProperties": {"type": "string"},
            "properties": {
                "grant_type": {"const": "client_credentials"},
                "client_id": {"const": "amphitrite"},
                "client_secret": {"type": "string", "description": "That of `ml server env`."},
                "scope": {"type": "string", "pattern": "^[^ ]+/[.]default$"},
            },
        },
        "GetLogsBody": {
            "type": "object",
            "properties": {
                "tail": {"type": "integer", "minimum": 1},
                "containerType": {"enum": ["InferenceServer", "StorageInitializer", None]},
                "instance": {"type": ["string", "null"], "description": "Lines of this instance only."},
            },
        },
        "AgentMetricsBody": {
            "type": "object",
            "required": ["began", "counters", "in_flight"],
            "properties": {
                "began": _COUNT,
                "counters": _by_name(NAME, _by_name(NAME, _by_name(FIELD, _COUNT))),
                "in_flight": _by_name(NAME, _by_name(NAME, _COUNT)),
                "used": _by_name(NAME, _by_name(CREDENTIAL, _COUNT)),
            },
        },
        "AgentReportBody": {
            "type": "object",
            "properties": {
                "acknowledged_version": _VERSION,
                "drained_version": _VERSION,
                "rejected_version": _VERSION,
                "error": _SAID,
                "envoy": {"type": ["object", "null"], "properties": {"pid": _VERSION, "version": _SAID}},
            },
        },
    }
